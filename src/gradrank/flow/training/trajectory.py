"""`Trajectory`: what a run recorded, and the network that it ended with."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import xarray

from gradrank.flow.training.series import STEP, Series
from gradrank.foundation.names import look_up
from gradrank.problem.draw import Draw

if TYPE_CHECKING:
    from gradrank.flow.training.descent import Descent


@dataclass(frozen=True, eq=False)
class Trajectory:
    """The recorded quantities by name, the draw with the trained network, and how the run ended.

    A run that stops early keeps everything up to there: ``final`` then holds the last weights whose outputs were finite.
    """

    descent: Descent
    series: Mapping[str, Series]
    final: Draw  # its weights count as given: predictions for random weights decline
    last_step: int  # of ``final``
    status: str = "ok"  # or at which step the run stopped, and why

    @property
    def names(self) -> tuple[str, ...]:
        """The recorded names."""
        return tuple(self.series)

    def steps(self, name: str) -> np.ndarray:
        """Return the steps at which ``name`` was recorded, shape (S,); step 0 is before the first step."""
        return np.array(look_up("name", name, self.series).steps)

    def values(self, name: str) -> np.ndarray:
        """Return what was recorded under ``name``, shape (S, …)."""
        return look_up("name", name, self.series).stacked()

    def to_xarray(self) -> xarray.Dataset:
        """Return a dataset over ``step``, the union of all recorded steps.

        A number recorded less often is NaN in between. An array recorded less often keeps steps of its own, in the
        dimension ``<name>_step``.
        """
        union = np.array(sorted({step for one in self.series.values() for step in one.steps}), dtype=np.int64)
        variables, coordinates = {}, {STEP: union}
        for name, one in self.series.items():
            values, steps = one.stacked(), np.array(one.steps)
            if len(steps) == len(union):
                variables[name] = ((STEP, *one.dims), values)
            elif not one.dims:
                filled = np.full(len(union), np.nan)
                filled[np.searchsorted(union, steps)] = values
                variables[name] = ((STEP,), filled)
            else:
                coordinates[f"{name}_step"] = steps
                variables[name] = ((f"{name}_step", *one.dims), values)
        attributes = {
            "status": self.status,
            "seed": self.final.seed,
            "descent": self.descent.model_dump_json(),
        }
        return xarray.Dataset(variables, coordinates, attributes)
