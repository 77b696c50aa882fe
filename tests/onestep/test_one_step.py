"""One step on the data of a problem: which samples it takes, against a run by hand, and what it refuses."""

import numpy as np
import pytest
import torch
from sklearn.linear_model import Ridge

import gradrank as gr
from gradrank.foundation.errors import InputError
from gradrank.onestep import OneStep
from gradrank.onestep.step import stepped


def problem(**inputs: object) -> gr.Problem:
    return gr.Problem(
        inputs=gr.SpikedGaussian(**{"n": 80, "d": 50, "nu": 0.3, **inputs}),
        network=gr.TwoLayer(m=60, activation="sigmoid", scaling="mf", inner="gaussian"),
    )


def test_the_step_takes_the_draw_of_the_problem_and_fresh_samples_its_population() -> None:
    one = OneStep(problem(), eta=3.0, samples=90, test=500)
    step, fresh, truth = one._draws(5, "cpu")
    torch.testing.assert_close(step.X, problem().draw(5).X, rtol=0, atol=0)
    assert fresh.X.shape == (590, 50)
    assert fresh.inputs.strength == pytest.approx(step.inputs.strength, rel=1e-12)
    torch.testing.assert_close(fresh.inputs.direction, step.inputs.direction, rtol=0, atol=0)
    assert not torch.isclose(fresh.X[:80], step.X).any()
    directions = torch.stack(list(step.target_directions.values()), dim=1)
    t = fresh.X @ directions
    torch.testing.assert_close(truth, torch.tanh(t[:, 0]) + torch.sigmoid(t[:, 1]) + torch.relu(t[:, 2]))
    noise = fresh.y - truth
    assert float(noise.std()) == pytest.approx(0.1, rel=0.15)  # five standard errors of 590 samples


def test_a_run_by_hand() -> None:
    one = OneStep(problem(), eta=3.0, exponent=0.25, samples=90, test=400)
    found = one.run([0.01, 0.5], seed=2)
    step, fresh, truth = one._draws(2, "cpu")
    assert found.eta == pytest.approx(3 * 60**0.25)
    after = stepped(step, found.eta)
    features = {
        "risk": torch.sigmoid(fresh.X @ after.network.W.T),
        "risk_before": torch.sigmoid(fresh.X @ step.network.W.T),
        "risk_linear": fresh.X,
    }
    for name, S in features.items():
        for index, ridge in enumerate([0.01, 0.5]):
            other = Ridge(alpha=ridge * 90).fit(S[:90].numpy(), fresh.y[:90].numpy())
            errors = (other.predict(S[90:].numpy()) - truth[90:].numpy()) ** 2
            assert getattr(found, name)[index] == pytest.approx(errors.mean(), rel=1e-7)
            if name == "risk":
                assert found.standard_error[index] == pytest.approx(errors.std(ddof=1) / 20, rel=1e-6)
    np.testing.assert_allclose(found.improvement, found.risk_before - found.risk, rtol=1e-9)
    assert found.shape == (80, 90, 400, 50, 60)
    values = torch.linalg.svdvals(after.network.W)
    np.testing.assert_allclose(found.singular_values, values[:5].numpy(), rtol=1e-10)
    assert set(found.alignments) >= {"q", "bulk_residue", "target_1"}


def test_no_step_changes_nothing() -> None:
    found = OneStep(problem(), eta=0.0, test=100).run(0.1)
    np.testing.assert_allclose(found.risk, found.risk_before, rtol=1e-12)
    np.testing.assert_allclose(found.improvement, 0, atol=1e-15)


def test_penalties_act_on_the_step_and_other_losses_work() -> None:
    decayed = problem().model_copy(update={"regularisers": gr.Regularisers(weight_decay=0.1), "loss": "huber"})
    assert (
        OneStep(decayed, eta=1.0, test=100).run(0.1).risk[0] != OneStep(problem(), eta=1.0, test=100).run(0.1).risk[0]
    )
    noisy = problem().model_copy(update={"regularisers": gr.Regularisers(input_noise=1.0)})
    found = OneStep(noisy, eta=0.0, test=100).run(0.1)  # noise is for the step alone: ridge and test are clean
    np.testing.assert_allclose(found.risk, OneStep(problem(), eta=0.0, test=100).run(0.1).risk, rtol=1e-12)


def test_real_data_are_parted_without_overlap() -> None:
    digits = gr.Problem(
        inputs=gr.DataSetInputs(name="digits", n=200, standardise="zscore"),
        targets="one-vs-rest",
        network=gr.TwoLayer(m=80, activation="relu", scaling="mf"),
    )
    one = OneStep(digits, eta=2.0, samples=300)
    step, fresh, truth = one._draws(0, "cpu")
    assert (len(step.y), len(fresh.y), len(truth)) == (200, 1597, 1597)
    rows = torch.cat([step.X, fresh.X])
    assert len(torch.unique(rows, dim=0)) == len(
        torch.unique(digits.inputs.model_copy(update={"n": None}).draw(0).X, dim=0)
    )
    assert 0.05 < float((fresh.y[:300] > 0).double().mean()) < 0.2  # shuffled: digits come in no order
    found = one.run([0.01, 0.1])
    assert found.shape == (200, 300, 1297, 64, 80)
    assert bool((found.risk < found.null_risk).all())


@pytest.mark.parametrize(
    ("one", "message"),
    [
        (OneStep(problem(), eta=-1.0), "eta: -1.0 is not allowed"),
        (OneStep(problem(), samples=1), "samples: 1 is not allowed"),
        (OneStep(problem(), test=0), "test: 0 is not allowed"),
        (OneStep(gr.Problem(inputs="digits", targets="one-vs-rest")), "inputs.n: is missing"),
        (
            OneStep(gr.Problem(inputs=gr.DataSetInputs(name="digits", n=1000), targets="one-vs-rest")),
            "1000 samples for the step, 1000 for the ridge and 2 for the test are more than the 1797",
        ),
        (OneStep(problem(), eta=1e308, exponent=0.5), "eta: the step inf gives weights|eta: "),
    ],
)
def test_bad_arguments(one: OneStep, message: str) -> None:
    with pytest.raises(InputError, match=message):
        one.run(0.1)
