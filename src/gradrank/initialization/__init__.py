"""Stage zero: the random covariance of deep, wide, shaped networks at initialisation, and the SDE that it follows."""

from gradrank.initialization.comparison import Compared, compare
from gradrank.initialization.correlation import (
    CorrelationLaw,
    correlation_flow,
    correlation_moments,
    sample_correlation,
)
from gradrank.initialization.network import sample_network
from gradrank.initialization.one_input import (
    OneInput,
    blow_up_time,
    explosion_probability,
    inverse_mean,
    mean_field_flow,
    sample_one_input,
    stationary_law,
)
from gradrank.initialization.real_network import ShapedNetwork, sample_real_network
from gradrank.initialization.sde import sample_sde
from gradrank.initialization.shaped_relu import ShapedReLU
from gradrank.initialization.shaped_smooth import ShapedSmooth
from gradrank.initialization.unshaped import arc_cosine_kernel, collapse, collapse_moments, sample_collapse

__all__ = [
    "Compared",
    "CorrelationLaw",
    "OneInput",
    "ShapedNetwork",
    "ShapedReLU",
    "ShapedSmooth",
    "arc_cosine_kernel",
    "blow_up_time",
    "collapse",
    "collapse_moments",
    "compare",
    "correlation_flow",
    "correlation_moments",
    "explosion_probability",
    "inverse_mean",
    "mean_field_flow",
    "sample_collapse",
    "sample_correlation",
    "sample_network",
    "sample_one_input",
    "sample_real_network",
    "sample_sde",
    "stationary_law",
]
