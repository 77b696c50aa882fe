"""When a tracker looks: every k steps, at logarithmic steps, or at given ones."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from gradrank.foundation.errors import InputError, unusable
from gradrank.foundation.numbers import whole


class Schedule(Protocol):
    """A choice of steps out of 0, …, last; step 0 is the network before its first step."""

    def steps(self, last: int) -> frozenset[int]:
        """Return the chosen steps of a run of ``last`` steps."""


@dataclass(frozen=True)
class Every:
    """0, k, 2k, … and the last step."""

    k: int = 1

    def __post_init__(self) -> None:
        object.__setattr__(self, "k", whole("schedule.k", self.k, 1))

    def steps(self, last: int) -> frozenset[int]:
        """Return the multiples of k and the last step."""
        return frozenset((*range(0, last + 1, self.k), last))


ALWAYS = Every()


@dataclass(frozen=True)
class Logarithmic:
    """0, the whole numbers nearest to 10^(i / per_decade), i = 0, 1, …, and the last step."""

    per_decade: int = 10

    def __post_init__(self) -> None:
        object.__setattr__(self, "per_decade", whole("schedule.per_decade", self.per_decade, 1))

    def steps(self, last: int) -> frozenset[int]:
        """Return 0, the rounded powers up to the last step, and the last step."""
        powers = int(np.ceil(self.per_decade * np.log10(max(last, 1)))) + 1
        rounded = (round(10 ** (i / self.per_decade)) for i in range(powers))
        return frozenset((0, *(step for step in rounded if step <= last), last))


@dataclass(frozen=True)
class At:
    """The given steps and no others."""

    given: tuple[int, ...]

    def __init__(self, given: Iterable[int]) -> None:
        try:
            chosen = tuple(given)
        except TypeError:
            raise unusable("schedule.given", given, "give a list of steps") from None
        if not chosen:
            raise unusable("schedule.given", [], "give at least one step")
        object.__setattr__(self, "given", tuple(sorted({whole("schedule.given", step, 0) for step in chosen})))

    def steps(self, last: int) -> frozenset[int]:
        """Return the given steps.

        Raises
        ------
        InputError
            If one lies beyond the last step.
        """
        if self.given[-1] > last:
            raise unusable("schedule.given", self.given[-1], f"the run has {last} steps; give steps from 0 to {last}")
        return frozenset(self.given)


def check_schedule(tracker: object, schedule: object) -> None:
    """Refuse what is no schedule, such as a bare number."""
    if not callable(getattr(schedule, "steps", None)):
        raise InputError(
            f"trackers: {type(tracker).__name__} has the schedule {schedule!r}; give Every, Logarithmic or At"
        )
