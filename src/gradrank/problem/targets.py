"""Targets y: functions of a few directions of the inputs, or the labels that came with the data."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import numpy as np
import torch
from pydantic import BeforeValidator, Field, field_validator, model_validator

from gradrank.foundation.errors import InputError, unusable
from gradrank.foundation.names import allowed_names, look_up
from gradrank.foundation.random import stream, unit_vector
from gradrank.foundation.references import is_reference, resolve
from gradrank.problem.inputs import Inputs
from gradrank.problem.specification import Specification

LINKS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "linear": lambda t: t,
    "tanh": torch.tanh,
    "sigmoid": torch.sigmoid,
    "relu": torch.relu,
    "erf": torch.erf,
    "sin": torch.sin,
    "absolute": torch.abs,
    "square": torch.square,
    "hermite2": lambda t: t * t - 1,
    "hermite3": lambda t: t**3 - 3 * t,
}


@dataclass(frozen=True, eq=False)
class Targets:
    """Drawn labels, with the directions that they depend on."""

    y: torch.Tensor  # (n,)
    directions: dict[str, torch.Tensor]  # name -> (d,) unit vector; empty for real labels


def _tuple(value: Any) -> Any:
    """Accept a single value where a list is expected."""
    return (value,) if isinstance(value, (str, int, float)) else value


class MultiIndex(Specification):
    """y = Σ_k link_k(b_kᵀx) + noise · ε with unit directions b_k and ε ~ N(0, 1)."""

    kind: Literal["multi-index"] = "multi-index"
    links: Annotated[tuple[str, ...], BeforeValidator(_tuple)] = Field(("tanh", "sigmoid", "relu"), min_length=1)
    """Link functions by name, or as module:name."""
    directions: Annotated[tuple[Literal["random", "aligned", "orthogonal"], ...], BeforeValidator(_tuple)] = ("random",)
    """Each b_k: uniform on the sphere, at a stated cosine with q, or orthogonal to q; one for all or one each."""
    cosine: float = Field(1.0, ge=-1, le=1)
    """⟨b_k, q⟩ of the aligned directions."""
    noise: float = Field(0.1, ge=0)
    """Standard deviation of the label noise."""
    on: Literal["inputs", "bulk"] = "inputs"
    """Whether the target sees the inputs x or only their bulk x_B."""

    @field_validator("links")
    @classmethod
    def _known(cls, names: tuple[str, ...]) -> tuple[str, ...]:
        for name in names:
            if not is_reference(name):
                look_up("targets.links", name, LINKS)
        return names

    @model_validator(mode="after")
    def _one_each(self) -> "MultiIndex":
        if len(self.directions) not in (1, len(self.links)):
            raise ValueError(
                f"directions: {len(self.directions)} for {len(self.links)} links are not allowed; give one for all or one each"
            )
        return self

    def draw(self, inputs: Inputs, seed: int) -> Targets:
        """Draw the directions and the noise, and evaluate the target on (clean) inputs."""
        n, d = inputs.shape
        kinds = self.directions if len(self.directions) > 1 else self.directions * len(self.links)
        vectors = [self._direction(kind, inputs, d, seed, index) for index, kind in enumerate(kinds)]
        B = torch.stack(vectors, dim=1)
        if self.on == "bulk":
            if inputs.bulk is None:
                raise InputError("targets.on: 'bulk' is not allowed; real data have no known bulk, give 'inputs'")
            T = inputs.bulk @ B
        else:
            T = inputs.project(B)
        y = self.noise * torch.from_numpy(stream(seed, "targets.noise").standard_normal(n))
        for column, name in enumerate(self.links):
            link = resolve("targets.links", name) if is_reference(name) else LINKS[name]
            y = y + link(T[:, column])
        return Targets(y, {f"target_{index + 1}": vector for index, vector in enumerate(vectors)})

    def _direction(self, kind: str, inputs: Inputs, d: int, seed: int, index: int) -> torch.Tensor:
        u = torch.from_numpy(unit_vector(stream(seed, f"targets.direction.{index}"), d))
        if kind == "random":
            return u
        q = inputs.direction
        if q is None:
            raise InputError(
                f"targets.directions: '{kind}' is not allowed; the inputs have no known spike, give 'random'"
            )
        across = u - (u @ q) * q
        across = across / torch.linalg.vector_norm(across)
        cosine = self.cosine if kind == "aligned" else 0.0
        return torch.add(cosine * q, across, alpha=(1 - cosine**2) ** 0.5)


class LabelTargets(Specification):
    """Labels of the data: as numbers, as one class against the rest (±1), or two classes as ±1."""

    kind: Literal["given-labels"] = "given-labels"
    coding: Literal["numbers", "one-vs-rest", "signs"] = "one-vs-rest"
    """"numbers" as they stand; "one-vs-rest": +1 for the positive class, −1 else; "signs": two classes as −1 and +1."""
    positive: str | int | float | None = None
    """The class that is +1 under "one-vs-rest"; the first in order where none is given."""
    noise: float = Field(0.0, ge=0)
    """Standard deviation of Gaussian label noise."""

    def draw(self, inputs: Inputs, seed: int) -> Targets:
        """Code the labels that came with the inputs."""
        if inputs.labels is None:
            raise InputError("targets: the data have no labels; name a label column, or give a multi-index target")
        y = torch.from_numpy(self._coded(inputs.labels))
        noise = torch.from_numpy(stream(seed, "targets.noise").standard_normal(len(y)))
        return Targets(y + self.noise * noise if self.noise else y, {})

    def _coded(self, labels: np.ndarray) -> np.ndarray:
        if self.coding == "numbers":
            if labels.dtype.kind not in "fiub":
                raise InputError(
                    "targets.coding: 'numbers' is not allowed for text labels; give one of one-vs-rest, signs"
                )
            return labels.astype(np.float64)
        classes = np.unique(labels)
        if self.coding == "signs":
            if len(classes) != 2:
                raise InputError(
                    f"targets.coding: 'signs' needs two classes, the labels have {len(classes)}; give one-vs-rest"
                )
            return np.where(labels == classes[1], 1.0, -1.0)
        if len(classes) < 2:
            raise InputError(f"targets: all labels are '{classes[0]}'; give labels of at least two classes")
        if self.positive is None:
            return np.where(labels == classes[0], 1.0, -1.0)
        match = np.array([str(label) == str(self.positive) or label == self.positive for label in classes])
        if not match.any():
            names = [str(label) for label in classes]
            few = len(names) <= 20
            allowed = allowed_names(str(self.positive), names) if few else f"give one of {', '.join(names[:20])}, …"
            raise unusable("targets.positive", str(self.positive), allowed)
        return np.where(np.isin(labels, classes[match]), 1.0, -1.0)


@dataclass(frozen=True)
class NamedTarget:
    """A target that can be asked for by one word."""

    description: str
    specification: MultiIndex | LabelTargets


TARGETS = {
    "triple-index": NamedTarget(
        "tanh(b₁ᵀx) + sigmoid(b₂ᵀx) + relu(b₃ᵀx) + 0.1 ε, b_k uniform on the sphere", MultiIndex()
    ),
    "single-index": NamedTarget("sigmoid(b₁ᵀx) + 0.1 ε", MultiIndex(links=("sigmoid",))),
    "linear": NamedTarget("b₁ᵀx + 0.1 ε", MultiIndex(links=("linear",))),
    "aligned": NamedTarget("triple-index with b₁ = q", MultiIndex(directions=("aligned", "random", "random"))),
    "one-vs-rest": NamedTarget("labels of the data: +1 for one class, −1 for the others", LabelTargets()),
    "signs": NamedTarget("labels of the data: two classes as −1 and +1", LabelTargets(coding="signs")),
    "numbers": NamedTarget("labels of the data, as the numbers they are", LabelTargets(coding="numbers")),
}
