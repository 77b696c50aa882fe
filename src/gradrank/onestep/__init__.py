"""Stage two: one gradient step on the inner weights, then ridge regression on the features. Theory and simulation."""

from gradrank.onestep.asymptotic_risk import AsymptoticRisk, asymptotic_risk
from gradrank.onestep.bounds import LinearRisk, linear_bound, linear_risk
from gradrank.onestep.conditional_risk import ConditionalRisk, conditional_risk
from gradrank.onestep.large_step import LargeStepRisk, large_step_risk
from gradrank.onestep.moments import Moments, gaussian_moments
from gradrank.onestep.one_step import OneStep, OneStepRun
from gradrank.onestep.simulation import Simulation, simulate
from gradrank.onestep.spike_simulation import (
    FeatureSpikes,
    WeightSpike,
    simulate_feature_spikes,
    simulate_weight_spike,
)
from gradrank.onestep.spike_theory import FeatureSpikeTheory, SpikeTheory, feature_spikes, spike_theory

__all__ = [
    "AsymptoticRisk",
    "ConditionalRisk",
    "FeatureSpikeTheory",
    "FeatureSpikes",
    "LargeStepRisk",
    "LinearRisk",
    "Moments",
    "OneStep",
    "OneStepRun",
    "Simulation",
    "SpikeTheory",
    "WeightSpike",
    "asymptotic_risk",
    "conditional_risk",
    "feature_spikes",
    "gaussian_moments",
    "large_step_risk",
    "linear_bound",
    "linear_risk",
    "simulate",
    "simulate_feature_spikes",
    "simulate_weight_spike",
    "spike_theory",
]
