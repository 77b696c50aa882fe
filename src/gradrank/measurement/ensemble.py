"""`Ensemble`: many seeds of one problem, as means with standard errors."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from gradrank.measurement.record import BETA_NOTE, Measurement
from gradrank.measurement.strict_json import dumps, strict

if TYPE_CHECKING:
    import xarray
    from matplotlib.figure import Figure

ENSEMBLE_SCHEMA = "gradrank.ensemble/1"


@dataclass(frozen=True)
class Mean:
    """A mean over seeds with its standard error; NaN where fewer than two seeds have the number."""

    mean: float
    standard_error: float
    count: int

    @classmethod
    def of(cls, values: Iterable[float]) -> Mean:
        """Return mean and standard error of the finite values."""
        kept = np.array([value for value in values if math.isfinite(value)])
        if kept.size < 2:
            return cls(float(kept.mean()) if kept.size else math.nan, math.nan, int(kept.size))
        return cls(float(kept.mean()), float(kept.std(ddof=1) / math.sqrt(kept.size)), int(kept.size))


@dataclass(frozen=True, eq=False)
class Ensemble:
    """Measurements of one problem over several seeds."""

    measurements: tuple[Measurement, ...]

    @classmethod
    def of(cls, measurements: Iterable[Measurement]) -> Self:
        """Collect measurements, as they come."""
        return cls(tuple(measurements))

    @property
    def seeds(self) -> list[int]:
        """The seeds, in order."""
        return [one.seed for one in self.measurements]

    @property
    def norms(self) -> dict[str, Mean]:
        """Spectral norms."""
        return self._means(lambda one: one.norms)

    @property
    def ratios(self) -> dict[str, Mean]:
        """Norms over the remainder's."""
        return self._means(lambda one: one.ratios)

    @property
    def shares(self) -> dict[str, Mean]:
        """Shares of ‖G‖_F²."""
        return self._means(lambda one: one.shares)

    @property
    def singular_values(self) -> list[Mean]:
        """The leading singular values, by rank."""
        k = min(one.k for one in self.measurements)
        return [Mean.of(float(one.singular_values[i]) for one in self.measurements) for i in range(k)]

    @property
    def alignments(self) -> dict[str, dict[str, Mean]]:
        """Leading vector -> direction -> |cosine|."""
        first = self.measurements[0].alignments
        return {
            vector: {
                name: Mean.of(one.alignments.get(vector, {}).get(name, math.nan) for one in self.measurements)
                for name in table
            }
            for vector, table in first.items()
        }

    @property
    def part_alignments(self) -> dict[str, dict[str, Mean]]:
        """Rank-one part -> "left", "right" -> |cosine| with u₁ and v₁."""
        return {
            name: {side: Mean.of(one.part_alignments[name][side] for one in self.measurements) for side in sides}
            for name, sides in self.measurements[0].part_alignments.items()
        }

    @property
    def beta(self) -> Mean:
        """Mean of the draws' values."""
        return Mean.of(one.beta for one in self.measurements)

    def _means(self, table: Any) -> dict[str, Mean]:
        names = list(dict.fromkeys(name for one in self.measurements for name in table(one)))
        return {name: Mean.of(table(one).get(name, math.nan) for one in self.measurements) for name in names}

    def to_dict(self) -> dict[str, Any]:
        """Return plain data: each number as ``{"mean", "standard_error", "count"}``."""
        first = self.measurements[0]
        status: dict[str, str] = {}
        for one in self.measurements:
            for key, reason in one.status.items():
                status.setdefault(key, f"seed {one.seed}: {reason}")
        body = {
            "schema": ENSEMBLE_SCHEMA,
            "problem": first.description,
            "seed": first.seed,
            "seeds": self.seeds,
            "shape": dict(zip(("n", "d", "m"), first.shape, strict=True)),
            "norms": _plain(self.norms),
            "ratios": _plain(self.ratios) or None,
            "shares": _plain(self.shares) or None,
            "singular_values": [asdict(value) for value in self.singular_values],
            "alignments": {vector: _plain(table) for vector, table in self.alignments.items()},
            "part_alignments": {name: _plain(table) for name, table in self.part_alignments.items()},
            "chance": first.chance,
            "converged": all(one.converged for one in self.measurements),
            "split": first.split,
            "centring": first.centring,
            "beta": asdict(self.beta),
            "beta_note": f"mean over draws of {BETA_NOTE}",
            "regime": asdict(first.regime),
            "reconstruction_error": max(one.reconstruction_error for one in self.measurements),
            "seconds": sum(one.seconds for one in self.measurements),
            "environment": first.environment,
        }
        plain = strict(body, status)
        return {**plain, "status": status or {"measurement": "ok"}}

    def to_json(self) -> str:
        """Return a strict JSON string."""
        return dumps(self.to_dict())

    def to_xarray(self) -> xarray.Dataset:
        """Return the measurements' arrays along a dimension ``seed``; vectors are left out."""
        from gradrank.measurement.labelled import stacked

        return stacked(self.measurements)

    def plot(self) -> Figure:
        """Return a figure of the norms with error bars and the mean alignments."""
        from gradrank.measurement.drawing import ensemble_overview

        return ensemble_overview(self)

    def save(self, directory: str | Path, *, overwrite: bool = False) -> Path:
        """Write the ensemble as `Measurement.save` writes a measurement; every seed's arrays are kept."""
        from gradrank.measurement.storage import save

        return save(self, Path(directory), overwrite=overwrite)


def _plain(means: dict[str, Mean]) -> dict[str, dict[str, float]]:
    return {name: asdict(mean) for name, mean in means.items()}
