"""Stage three: training of finite networks with trackers (`gradrank.flow.training`), and symmetric mean-field dynamics.

The names of `gradrank.flow.symmetric` are here: gr.flow.linear_predictor_flow, gr.flow.norm_target_flow, gr.flow.particle_flow, …
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gradrank.flow.symmetric.linear_predictor import excess_risk as excess_risk
    from gradrank.flow.symmetric.linear_predictor import isotropic_progress as isotropic_progress
    from gradrank.flow.symmetric.linear_predictor import linear_predictor_flow as linear_predictor_flow
    from gradrank.flow.symmetric.linear_predictor import rates as rates
    from gradrank.flow.symmetric.low_dimensional import low_dimensional_flow as low_dimensional_flow
    from gradrank.flow.symmetric.norm_target import norm_target_flow as norm_target_flow
    from gradrank.flow.symmetric.particles import CorrelatedRisk as CorrelatedRisk
    from gradrank.flow.symmetric.particles import Particles as Particles
    from gradrank.flow.symmetric.particles import SampleRisk as SampleRisk
    from gradrank.flow.symmetric.particles import initial_particles as initial_particles
    from gradrank.flow.symmetric.particles import particle_flow as particle_flow
    from gradrank.flow.symmetric.symmetry import check_symmetry as check_symmetry
    from gradrank.flow.symmetric.symmetry import symmetry_error as symmetry_error
    from gradrank.flow.symmetric.targets import LinearTarget as LinearTarget
    from gradrank.flow.symmetric.targets import NetworkTarget as NetworkTarget
    from gradrank.flow.symmetric.targets import NormTarget as NormTarget
    from gradrank.flow.symmetric.targets import ProjectedTarget as ProjectedTarget

_HOME = {
    "CorrelatedRisk": "particles",
    "LinearTarget": "targets",
    "NetworkTarget": "targets",
    "NormTarget": "targets",
    "Particles": "particles",
    "ProjectedTarget": "targets",
    "SampleRisk": "particles",
    "check_symmetry": "symmetry",
    "excess_risk": "linear_predictor",
    "initial_particles": "particles",
    "isotropic_progress": "linear_predictor",
    "linear_predictor_flow": "linear_predictor",
    "low_dimensional_flow": "low_dimensional",
    "norm_target_flow": "norm_target",
    "particle_flow": "particles",
    "rates": "linear_predictor",
    "symmetry_error": "symmetry",
}
__all__ = list(_HOME)


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'gradrank.flow' has no attribute '{name}'")
    value = getattr(import_module(f"gradrank.flow.symmetric.{_HOME[name]}"), name)
    globals()[name] = value
    return value
