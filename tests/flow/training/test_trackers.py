"""What each tracker records, against the library's own measurement of the same weights or plain linear algebra."""

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from scipy.linalg import subspace_angles

import gradrank as gr
from gradrank.flow.training.held_out import hold_out
from gradrank.flow.training.leading import LeadingTriplets
from gradrank.flow.training.schedule import At, Every
from gradrank.flow.training.state import State
from gradrank.flow.training.trackers import (
    Alignments,
    HeldOutLoss,
    Loss,
    Parts,
    PrincipalAngles,
    Regime,
    StableRank,
    TopSingularValues,
    Tracker,
    Weights,
)
from gradrank.flow.training.trajectory import Trajectory
from gradrank.problem.draw import Draw

STEPS = 6


def small(**network: Any) -> Draw:
    return gr.Problem(inputs=gr.SpikedGaussian(n=60, d=80, nu=0.25), network=gr.TwoLayer(**{"m": 100, **network})).draw(
        0
    )


def run(draw: Draw, *trackers: Tracker, steps: int = STEPS) -> Trajectory:
    return gr.train(draw, gr.Descent(steps=steps), [*trackers, Weights()])


def draws(draw: Draw, trajectory: Trajectory) -> list[Draw]:
    """The draw with the weights of each step."""
    weights = torch.from_numpy(trajectory.values("weights"))
    return [replace(draw, network=replace(draw.network, W=W)) for W in weights]


def test_losses() -> None:
    train, test = hold_out(small(), 20)
    trajectory = gr.train(train, gr.Descent(steps=STEPS), [Loss(), HeldOutLoss(Every(2)), Weights()], test=test)
    for step, at in enumerate(draws(train, trajectory)):
        f = at.network.gamma * torch.sigmoid(at.X @ at.network.W.T) @ at.network.a
        assert trajectory.values("loss")[step] == pytest.approx(float(0.5 * (f - at.y).square().mean()), rel=1e-12)
    assert trajectory.steps("test_loss").tolist() == [0, 2, 4, 6]
    f = test.network.gamma * torch.sigmoid(test.X @ trajectory.final.network.W.T) @ test.network.a
    assert trajectory.values("test_loss")[-1] == pytest.approx(float(0.5 * (f - test.y).square().mean()), rel=1e-12)


def test_held_out_loss_needs_test_samples() -> None:
    with pytest.raises(gr.InputError, match="test: HeldOutLoss needs samples that are kept apart"):
        run(small(), HeldOutLoss())


def test_top_singular_values_are_those_of_the_gradient() -> None:
    draw = small()
    trajectory = run(draw, TopSingularValues(3))
    for step, at in enumerate(draws(draw, trajectory)):
        sigma = torch.linalg.svdvals(gr.decompose(at).gradient.dense())[:3].numpy()
        assert trajectory.values("singular_values")[step] == pytest.approx(sigma, rel=1e-6)
    assert trajectory.values("left_vectors").shape == (STEPS + 1, 3, 80)
    assert trajectory.values("right_vectors").shape == (STEPS + 1, 3, 100)
    assert "left_vectors" not in run(draw, TopSingularValues(3, vectors=False)).names


def test_alignments_are_those_of_the_present_decomposition() -> None:
    draw = small()
    extra = torch.randn(80, dtype=torch.float64)
    trajectory = run(draw, Alignments({"mine": extra}))
    first = torch.linalg.svd(gr.decompose(draw).gradient.dense())[0][:, 0]
    for step, at in enumerate(draws(draw, trajectory)):
        expected = gr.decompose(at).alignments({"mine": extra, "start": first}, k=1)
        for name in ("q", "bulk_residue", "bulk_labels", "target_1", "target_2", "target_3", "mine", "start"):
            assert trajectory.values(f"alignment_{name}")[step] == pytest.approx(float(expected.left[name]), abs=1e-4)
    assert trajectory.values("alignment_start")[0] == pytest.approx(1.0, abs=1e-6)
    assert trajectory.values("alignment_chance")[0] == pytest.approx(math.sqrt(2 / (math.pi * 80)))


def test_one_iteration_serves_all_trackers(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []
    of = LeadingTriplets.of
    monkeypatch.setattr(LeadingTriplets, "of", lambda self, G, k: asked.append(k) or of(self, G, k))
    run(small(), Alignments(), StableRank(), TopSingularValues(3, schedule=Every(2)), steps=4)
    assert asked == [3, 1, 3, 1, 3]


def test_alignment_with_the_start_does_not_need_step_zero() -> None:
    draw = small()
    whole, late = run(draw, Alignments()), run(draw, Alignments(schedule=At([4])))
    assert late.values("alignment_start")[0] == pytest.approx(whole.values("alignment_start")[4], abs=1e-5)


def test_directions_of_another_length_are_refused() -> None:
    with pytest.raises(gr.InputError, match=r"directions: 'mine' has the shape \(3,\); give a vector of length d = 80"):
        run(small(), Alignments({"mine": torch.ones(3)}))
    with pytest.raises(gr.InputError, match="directions: 'mine': 'x' is not allowed; give a vector of length 80"):
        run(small(), Alignments({"mine": "x"}))
    for name in ("q", "chance", "start"):
        with pytest.raises(gr.InputError, match=f"directions: '{name}' is recorded already"):
            run(small(), Alignments({name: torch.ones(80)}))
    with pytest.raises(gr.InputError, match="directions: 'list' is not allowed; give a mapping"):
        Alignments([torch.ones(80)])


@pytest.mark.parametrize("regularisers", [{}, {"weight_decay": 0.1, "jacobian": 2.0}])
def test_parts_are_those_of_decompose(regularisers: dict) -> None:
    draw = replace(small(), regularisers=gr.Regularisers(**regularisers))
    trajectory = run(draw, Parts())
    for step, at in enumerate(draws(draw, trajectory)):
        parts = gr.decompose(at)
        dense = {name: part.dense() for name, part in parts.items()}
        whole = sum(dense.values())
        for name, part in dense.items():
            norm = float(torch.linalg.matrix_norm(part, 2))
            assert trajectory.values(f"norm_{name}")[step] == pytest.approx(norm, rel=1e-5)
            share = float((part * whole).sum() / whole.square().sum())
            assert trajectory.values(f"share_{name}")[step] == pytest.approx(share, abs=1e-10)


def test_principal_angles() -> None:
    draw = small()
    other = torch.randn(100, 80, dtype=torch.float64)
    trajectory = run(draw, PrincipalAngles(schedule=Every(3)), PrincipalAngles(other, "to_other", Every(3)))
    weights = trajectory.values("weights")[::3]
    for name, reference in (("principal_angle", draw.network.W.numpy()), ("to_other", other.numpy())):
        exact = [np.degrees(subspace_angles(W, reference).mean()) for W in weights]
        assert trajectory.values(name) == pytest.approx(exact, abs=1e-6)
    assert trajectory.values("principal_angle")[0] == pytest.approx(0.0, abs=1e-5)


def test_principal_angles_of_known_planes() -> None:
    from gradrank.flow.training.principal_angles import mean_principal_angle

    A, B = torch.eye(4, 2), torch.eye(4, 2)
    B[1, 1], B[2, 1] = math.cos(0.3), math.sin(0.3)
    assert mean_principal_angle(A, B) == pytest.approx(math.degrees(0.15), rel=1e-6)


def test_principal_angles_that_say_nothing_are_refused() -> None:
    with pytest.raises(gr.InputError, match=r"network\.m: 50 is not allowed; column spaces of R\^m"):
        run(small(m=50), PrincipalAngles())
    with pytest.raises(gr.InputError, match=r"reference: the shape \(3, 2\) is not allowed"):
        run(small(), PrincipalAngles(torch.ones(3, 2)))
    with pytest.raises(gr.InputError, match="reference: an entry is NaN or infinite"):
        run(small(), PrincipalAngles(torch.full((100, 80), math.nan)))
    with pytest.raises(gr.InputError, match="reference: 'end' is not allowed; give 'start' or a weight matrix"):
        PrincipalAngles("end")


def test_stable_rank() -> None:
    draw = small()
    trajectory = run(draw, StableRank())
    for step, at in enumerate(draws(draw, trajectory)):
        sigma = torch.linalg.svdvals(gr.decompose(at).gradient.dense())
        assert trajectory.values("stable_rank")[step] == pytest.approx(
            float((sigma**2).sum() / sigma[0] ** 2), rel=2e-6
        )


def test_regime_quantities() -> None:
    draw = small()
    trajectory = run(draw, Regime())
    z, q = draw.inputs.scores, draw.inputs.direction
    for step, at in enumerate(draws(draw, trajectory)):
        r, W = at.residue, at.network.W
        alignment = float((z @ r).abs() / (math.sqrt(60) * r.norm()))
        expected = {
            "residue_norm": float(r.norm()) / math.sqrt(60),
            "residue_alignment": alignment,
            "beta": -2 * math.log(alignment) / math.log(80),
            "mean_derivative": float(gr.decompose(at).mean_derivative.value.abs().mean()),
            "weight_norm": float(torch.linalg.matrix_norm(W, 2)),
            "weight_alignment": float((W @ q).square().mean().sqrt()),
        }
        for name, value in expected.items():
            assert trajectory.values(name)[step] == pytest.approx(value, rel=1e-5), name


def test_what_needs_a_spike_is_missing_without_one() -> None:
    draw = gr.Problem(inputs=gr.SpikedGaussian(n=60, d=80, direction="none"), network=gr.TwoLayer(m=100)).draw(0)
    trajectory = run(draw, Alignments(), Regime())
    assert "alignment_q" not in trajectory.names
    for name in ("residue_alignment", "beta", "weight_alignment"):
        assert np.isnan(trajectory.values(name)).all()
    assert np.isfinite(trajectory.values("mean_derivative")).all()


def test_real_inputs_take_the_empirical_split() -> None:
    X = np.random.default_rng(0).standard_normal((40, 30)) + 1.0
    problem = gr.Problem(
        inputs=gr.ArrayInputs(X=X, y=np.tile([0, 1], 20)), targets="one-vs-rest", network=gr.TwoLayer(m=50)
    )
    trajectory = run(problem.draw(0), Alignments(), Parts(), Regime(), Loss())
    assert trajectory.values("alignment_q").shape == (STEPS + 1,)
    shares = sum(trajectory.values(name) for name in trajectory.names if name.startswith("share_"))
    assert shares == pytest.approx(np.ones(STEPS + 1))


def test_zero_gradient() -> None:
    """Labels that the network fits exactly: the gradient is zero, and nothing pretends to have a direction."""
    draw = small()
    fitted = replace(draw, y=draw.outputs.clone())
    trajectory = run(fitted, TopSingularValues(2), Alignments(), Parts(), StableRank(), Loss(), Regime())
    assert trajectory.status == "ok"
    assert (trajectory.values("singular_values") == 0).all()
    assert np.isnan(trajectory.values("left_vectors")).all()
    for name in ("alignment_q", "alignment_start", "alignment_bulk_residue", "stable_rank", "share_remainder", "beta"):
        assert np.isnan(trajectory.values(name)).all(), name
    assert torch.equal(trajectory.final.network.W, draw.network.W)


class Own:
    """As a user writes one."""

    def __init__(self, values: list[Any], schedule: Any = Every(1), dims: dict | None = None) -> None:  # noqa: B008
        self.values, self.schedule, self.dims = values, schedule, dims or {}

    def record(self, state: State) -> Any:
        return self.values[state.step]


def test_own_tracker() -> None:
    values = [{"mine": step, "table": np.full((2, 3), step), "row": torch.ones(2) * step} for step in range(7)]
    trajectory = run(small(), Own(values, dims={"table": ("a", "b")}))
    assert trajectory.values("mine").tolist() == list(range(7))
    data = trajectory.to_xarray()
    assert data["table"].dims == ("step", "a", "b")
    assert data["row"].dims == ("step", "row_0")


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ([3.0] * 7, "trackers: record returned a float; give a mapping of names to arrays"),
        ([{"mine": "text"}] * 7, "trackers: 'mine' has the type <U4; give numbers or arrays of numbers"),
        ([{"mine": [[1.0], [1.0, 2.0]]}] * 7, "trackers: 'mine' is no array; give numbers or arrays of numbers"),
        ([{"mine": torch.ones(2, dtype=torch.bfloat16)}] * 7, "trackers: 'mine' is no array"),
        ([{"step": 0.0}] * 7, "trackers: 'step' is the name of the steps themselves"),
        ([{"loss": 0.0}] * 7, "trackers: two of them record 'loss'; leave one out, or give it another name"),
        ([{"mine": 0.0}, {"mine": [1.0, 2.0]}], "trackers: 'mine' has the shape (2,) after ()"),
        ([{"table": [1.0]}] * 7, "trackers: 'table' has the shape (1,); give 2 dimensions"),
    ],
)
def test_own_trackers_that_do_not_fit(values: list[Any], message: str) -> None:
    with pytest.raises(gr.InputError) as caught:
        run(small(), Loss(), Own(values, dims={"table": ("a", "b")}))
    assert str(caught.value).startswith(message)


def test_bad_k() -> None:
    with pytest.raises(gr.InputError, match="k: 0 is not allowed"):
        TopSingularValues(0)
    with pytest.raises(gr.InputError, match="k: 81 is not allowed; give a number from 1 to min"):
        run(small(), TopSingularValues(81))
