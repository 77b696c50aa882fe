"""gradrank: find, name and predict the low-rank structure of neural-network gradients.

>>> import gradrank as gr
>>> problem = gr.Problem(inputs=gr.SpikedGaussian(n=100, d=150, nu=0.3), network=gr.TwoLayer(m=200))
>>> parts = gr.decompose(problem.draw(seed=0))
>>> list(parts)
['residue_spike', 'interpolant', 'data_spike', 'remainder']

Names are imported when first used, so that ``import gradrank`` and the command line start at once.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from gradrank.version import __version__

if TYPE_CHECKING:
    from gradrank import flow as flow
    from gradrank import initialization as initialization
    from gradrank import onestep as onestep
    from gradrank.flow.training.descent import Descent as Descent
    from gradrank.flow.training.descent import train as train
    from gradrank.foundation.errors import GradrankError as GradrankError
    from gradrank.foundation.errors import InputError as InputError
    from gradrank.gradient.beta import BetaEstimate as BetaEstimate
    from gradrank.gradient.beta import estimate_beta as estimate_beta
    from gradrank.gradient.convolution import filter_gradient as filter_gradient
    from gradrank.gradient.decomposition import Decomposition as Decomposition
    from gradrank.gradient.decomposition import decompose as decompose
    from gradrank.gradient.exponents import Exponents as Exponents
    from gradrank.gradient.exponents import estimate_exponents as estimate_exponents
    from gradrank.gradient.factored_gradient import FactoredGradient as FactoredGradient
    from gradrank.gradient.norm_prediction import NormPrediction as NormPrediction
    from gradrank.gradient.norm_prediction import predict_norms as predict_norms
    from gradrank.gradient.regime import Regime as Regime
    from gradrank.gradient.regime import regime as regime
    from gradrank.gradient.spectrum_comparison import SpectrumComparison as SpectrumComparison
    from gradrank.gradient.spectrum_prediction import SpectrumPrediction as SpectrumPrediction
    from gradrank.gradient.spectrum_prediction import predict_spectrum as predict_spectrum
    from gradrank.gradient.spike_count import SpikeCount as SpikeCount
    from gradrank.gradient.spike_count import count_spikes as count_spikes
    from gradrank.linalg.low_rank import LowRank as LowRank
    from gradrank.linalg.spectrum import Spectrum as Spectrum
    from gradrank.measurement.ensemble import Ensemble as Ensemble
    from gradrank.measurement.measure import measure as measure
    from gradrank.measurement.measure import measure_many as measure_many
    from gradrank.measurement.record import Measurement as Measurement
    from gradrank.measurement.storage import load as load
    from gradrank.measurement.storage import write_page as write_page
    from gradrank.measurement.terminal import show as show
    from gradrank.problem.draw import Draw as Draw
    from gradrank.problem.network import TwoLayer as TwoLayer
    from gradrank.problem.problem import Problem as Problem
    from gradrank.problem.real_inputs import ArrayInputs as ArrayInputs
    from gradrank.problem.real_inputs import DataSetInputs as DataSetInputs
    from gradrank.problem.real_inputs import FileInputs as FileInputs
    from gradrank.problem.regularisers import Regularisers as Regularisers
    from gradrank.problem.spiked_gaussian import SpikedGaussian as SpikedGaussian
    from gradrank.problem.targets import LabelTargets as LabelTargets
    from gradrank.problem.targets import MultiIndex as MultiIndex

_HOME = {
    "ArrayInputs": "problem.real_inputs",
    "BetaEstimate": "gradient.beta",
    "DataSetInputs": "problem.real_inputs",
    "Decomposition": "gradient.decomposition",
    "Descent": "flow.training.descent",
    "Draw": "problem.draw",
    "Ensemble": "measurement.ensemble",
    "Exponents": "gradient.exponents",
    "FactoredGradient": "gradient.factored_gradient",
    "FileInputs": "problem.real_inputs",
    "GradrankError": "foundation.errors",
    "InputError": "foundation.errors",
    "LabelTargets": "problem.targets",
    "LowRank": "linalg.low_rank",
    "Measurement": "measurement.record",
    "MultiIndex": "problem.targets",
    "NormPrediction": "gradient.norm_prediction",
    "Problem": "problem.problem",
    "Regime": "gradient.regime",
    "Regularisers": "problem.regularisers",
    "Spectrum": "linalg.spectrum",
    "SpectrumComparison": "gradient.spectrum_comparison",
    "SpectrumPrediction": "gradient.spectrum_prediction",
    "SpikeCount": "gradient.spike_count",
    "SpikedGaussian": "problem.spiked_gaussian",
    "TwoLayer": "problem.network",
    "count_spikes": "gradient.spike_count",
    "decompose": "gradient.decomposition",
    "estimate_beta": "gradient.beta",
    "estimate_exponents": "gradient.exponents",
    "filter_gradient": "gradient.convolution",
    "load": "measurement.storage",
    "measure": "measurement.measure",
    "measure_many": "measurement.measure",
    "predict_norms": "gradient.norm_prediction",
    "predict_spectrum": "gradient.spectrum_prediction",
    "regime": "gradient.regime",
    "show": "measurement.terminal",
    "train": "flow.training.descent",
    "write_page": "measurement.storage",
}
_STAGES = ("flow", "initialization", "onestep")  # packages whose names are used through them: gr.onestep.simulate
__all__ = [*_HOME, *_STAGES, "__version__"]


def __getattr__(name: str) -> Any:
    if name in _STAGES:
        return import_module(f"gradrank.{name}")
    if name not in _HOME:
        raise AttributeError(f"module 'gradrank' has no attribute '{name}'")
    value = getattr(import_module(f"gradrank.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
