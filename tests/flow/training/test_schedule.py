import pytest

import gradrank as gr
from gradrank.flow.training.schedule import At, Every, Logarithmic


def test_every_k_steps_and_the_last() -> None:
    assert sorted(Every(3).steps(10)) == [0, 3, 6, 9, 10]
    assert sorted(Every().steps(4)) == [0, 1, 2, 3, 4]
    assert sorted(Every(50).steps(10)) == [0, 10]


def test_logarithmic_steps() -> None:
    assert sorted(Logarithmic(1).steps(1000)) == [0, 1, 10, 100, 1000]
    assert sorted(Logarithmic(3).steps(120)) == [0, 1, 2, 5, 10, 22, 46, 100, 120]
    assert sorted(Logarithmic(4).steps(1)) == [0, 1]
    dense = sorted(Logarithmic(10).steps(100_000))
    assert len(dense) < 52
    assert dense[-1] == 100_000


def test_given_steps_and_no_others() -> None:
    assert sorted(At([5, 0, 5, 2]).steps(10)) == [0, 2, 5]
    assert At([1, 2]) == At((2, 1))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Every(0), "schedule.k: 0 is not allowed; give a whole number of at least 1"),
        (lambda: Every(1.5), "schedule.k: 1.5 is not allowed"),
        (lambda: Every(True), "schedule.k: True is not allowed"),
        (lambda: Logarithmic(0), "schedule.per_decade: 0 is not allowed"),
        (lambda: At([]), "schedule.given: [] is not allowed; give at least one step"),
        (lambda: At([3, -1]), "schedule.given: -1 is not allowed; give a whole number of at least 0"),
        (lambda: At(3), "schedule.given: 3 is not allowed; give a list of steps"),
        (
            lambda: At([11]).steps(10),
            "schedule.given: 11 is not allowed; the run has 10 steps; give steps from 0 to 10",
        ),
    ],
)
def test_bad_schedules_are_refused(make, message: str) -> None:
    with pytest.raises(gr.InputError) as caught:
        make()
    assert str(caught.value).startswith(message)
