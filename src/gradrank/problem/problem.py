"""`Problem`: everything needed to reproduce one draw, in Python, TOML or JSON."""

import tomllib
from pathlib import Path
from typing import Annotated, Any, Literal, Self

import numpy as np
import tomli_w
import torch
from pydantic import BeforeValidator, Discriminator, Field, Tag, model_validator

from gradrank.foundation.devices import device_named
from gradrank.foundation.errors import InputError, unusable
from gradrank.foundation.names import allowed_names
from gradrank.foundation.random import stream
from gradrank.problem.data_sets import DATA_SETS
from gradrank.problem.draw import Draw
from gradrank.problem.losses import loss
from gradrank.problem.network import TwoLayer
from gradrank.problem.real_inputs import ArrayInputs, DataSetInputs, FileInputs
from gradrank.problem.regularisers import Regularisers
from gradrank.problem.specification import Specification
from gradrank.problem.spiked_gaussian import SpikedGaussian
from gradrank.problem.targets import TARGETS, LabelTargets, MultiIndex

LARGEST_FILE = 1 << 20  # of a problem in TOML
DTYPES = {"float64": torch.float64, "float32": torch.float32}


def _inputs(value: Any) -> Any:
    """Accept the name of a data set, a path, or an array where a specification is expected."""
    if isinstance(value, str) and value in DATA_SETS:
        return {"kind": "data-set", "name": value}
    if isinstance(value, (str, Path)):
        if "." not in str(value) and "/" not in str(value):
            raise InputError(
                f"inputs: '{value}' is not allowed; {allowed_names(str(value), DATA_SETS)}, or the path of a file"
            )
        return {"kind": "data-file", "path": Path(value)}
    if isinstance(value, (np.ndarray, torch.Tensor)):
        return {"kind": "given-array", "X": value}
    return value


def _targets(value: Any) -> Any:
    if isinstance(value, str):
        if value not in TARGETS:
            raise ValueError(allowed_names(value, TARGETS))
        return TARGETS[value].specification
    return value


def _loss(value: Any) -> Any:
    loss(value)
    return value


def _kind(default: str) -> Discriminator:
    """Choose the member of a union by its ``kind``, which may be left out for the usual one."""

    def kind(value: Any) -> Any:
        return value.get("kind", default) if isinstance(value, dict) else getattr(value, "kind", None)

    return Discriminator(kind)


AnyInputs = Annotated[
    Annotated[SpikedGaussian, Tag("spiked-gaussian")]
    | Annotated[ArrayInputs, Tag("given-array")]
    | Annotated[FileInputs, Tag("data-file")]
    | Annotated[DataSetInputs, Tag("data-set")],
    _kind("spiked-gaussian"),
]
AnyTargets = Annotated[
    Annotated[MultiIndex, Tag("multi-index")] | Annotated[LabelTargets, Tag("given-labels")], _kind("multi-index")
]


class Problem(Specification):
    """One problem: inputs, targets, network, loss and regularisers. Frozen; ``draw(seed)`` is a function of it and the seed."""

    inputs: Annotated[AnyInputs, BeforeValidator(_inputs)] = Field(default_factory=SpikedGaussian)
    """A `SpikedGaussian`, an array, the name of a data set or the path of a file."""
    targets: Annotated[AnyTargets, BeforeValidator(_targets)] = Field(default_factory=MultiIndex)
    """A `MultiIndex`, `LabelTargets`, or one of the names that `gradrank list` shows."""
    network: TwoLayer = Field(default_factory=TwoLayer)
    """The two-layer network."""
    loss: Annotated[Any, BeforeValidator(_loss)] = "mse"
    """ℓ(f, y) by name, as module:name, or a function of two tensors."""
    regularisers: Regularisers = Field(default_factory=Regularisers)
    """Weight decay, input noise and Jacobian penalty."""
    dtype: Literal["float64", "float32"] = "float64"
    """Precision of the measurement; everything is drawn in float64 and then cast."""

    @model_validator(mode="after")
    def _spike_exists(self) -> Self:
        if isinstance(self.inputs, SpikedGaussian):
            if isinstance(self.targets, LabelTargets):
                raise ValueError("targets: synthetic inputs come without labels; give a multi-index target")
            needs_q = self.network.inner in ("aligned", "orthogonal")
            if needs_q and not self.inputs.has_spike:
                raise ValueError(f"network.inner: '{self.network.inner}' needs a spike; give inputs with a direction")
        return self

    def with_digest(self) -> Self:
        """Return the problem with the SHA-256 of its data file filled in, so that a changed file is noticed later."""
        if not isinstance(self.inputs, FileInputs):
            return self
        return self.model_copy(update={"inputs": self.inputs.with_digest()})

    def draw(self, seed: int = 0, *, device: str = "cpu") -> Draw:
        """Draw inputs, labels and network, each from named random streams of ``seed``, in float64 on the CPU.

        The labels and the weights are made from the clean inputs; input noise comes after. The draw is then cast to
        ``dtype`` and moved to ``device``: the same numbers on every device, to the accuracy of the precision.

        Raises
        ------
        InputError
            If the data cannot be read, parts do not fit together, or the device is not there.
        """
        if isinstance(seed, bool) or not isinstance(seed, (int, np.integer)) or seed < 0:
            raise unusable("seed", seed, "give a whole number of at least 0")
        target_device = device_named(device)
        clean = self.inputs.draw(int(seed))
        targets = self.targets.draw(clean, int(seed))
        noisy = clean.with_noise(self.regularisers.input_noise, stream(int(seed), "inputs.noise"))
        network = self.network.draw(noisy, int(seed))
        dtype = DTYPES[self.dtype]
        return Draw(
            seed=int(seed),
            inputs=noisy.to(dtype, target_device),
            y=targets.y.to(device=target_device, dtype=dtype),
            target_directions={k: v.to(device=target_device, dtype=dtype) for k, v in targets.directions.items()},
            network=network.to(dtype, target_device),
            loss=loss(self.loss),
            regularisers=self.regularisers,
        )

    def to_dict(self) -> dict[str, Any]:
        """Return plain nested dictionaries, ready for JSON or TOML; fields that are None are left out.

        Raises
        ------
        InputError
            If the problem holds a function or an array, which cannot be written down.
        """
        return {name: _plain(name, value) for name, value in _fields(self).items() if value is not None}

    def describe(self) -> tuple[dict[str, Any], list[str]]:
        """Return `to_dict` with functions and arrays replaced by a description, and the reasons why it cannot be rebuilt."""
        reasons: list[str] = []

        def describe(field: str, value: Any) -> Any:
            if isinstance(value, Specification):
                return {k: describe(f"{field}.{k}".lstrip("."), v) for k, v in _fields(value).items() if v is not None}
            try:
                return _plain(field, value)
            except InputError as error:
                reasons.append(str(error))
                name = getattr(value, "__name__", type(value).__name__)
                return f"array of shape {tuple(value.shape)}" if hasattr(value, "shape") else f"function {name}"

        return describe("", self), reasons

    def to_toml(self) -> str:
        """Return the problem as TOML text; `from_toml` reads it back to an equal problem."""
        return tomli_w.dumps(self.to_dict())

    @classmethod
    def from_toml(cls, source: str | Path) -> Self:
        """Read a problem from TOML text or from a file.

        Raises
        ------
        InputError
            If the file cannot be read, is not TOML, or a field is wrong.
        """
        return cls.from_mapping(read_toml(source))


def read_toml(source: str | Path) -> dict[str, Any]:
    """Parse TOML text (a str) or a file (a Path), or raise an `InputError` of one line."""
    where = "TOML" if isinstance(source, str) else str(source)
    text = source if isinstance(source, str) else _read(source)
    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        hint = "; give a pathlib.Path to read a file" if isinstance(source, str) and source.endswith(".toml") else ""
        raise InputError(f"{where}: is not TOML ({error}){hint}") from None


def _fields(specification: Specification) -> dict[str, Any]:
    return {name: getattr(specification, name) for name in type(specification).model_fields}


def _plain(field: str, value: Any) -> Any:
    """Return ``value`` as plain data, or say why it cannot be written down."""
    if isinstance(value, Specification):
        return {name: _plain(f"{field}.{name}", part) for name, part in _fields(value).items() if part is not None}
    if isinstance(value, Path):
        return str(value)
    if isinstance(value, (tuple, list)):
        return [_plain(field, part) for part in value]
    if isinstance(value, (np.ndarray, torch.Tensor)):
        raise InputError(f"{field}: an array cannot be written down; save it to a file and give its path")
    if isinstance(value, (str, bool, int, float)):
        return value
    raise InputError(f"{field}: a function cannot be written down; name it as module:name")


def _read(path: Path) -> str:
    try:
        if path.stat().st_size > LARGEST_FILE:
            raise InputError(f"{path}: is larger than a problem file can be ({LARGEST_FILE} bytes); give a TOML file")
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise InputError(f"{path}: cannot be read ({reason}); give a TOML file") from None
    if not text.strip():
        raise InputError(f"{path}: is empty; give a TOML file, such as gradrank template prints")
    return text
