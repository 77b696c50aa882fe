"""PyTorch files: a two-dimensional tensor, or a dictionary of tensors."""

from collections.abc import Mapping

import numpy as np
import torch

from gradrank.problem.files.members import choose_members
from gradrank.problem.files.source import DataFile


def read_tensors(file: DataFile, labels: str | None) -> tuple[np.ndarray, np.ndarray | None]:
    """Return X and, if there is one, y of a file written by `torch.save`; only tensors are loaded, never code."""
    file.require_memory(file.size)
    with file.parsing("a PyTorch file of tensors"):
        held = torch.load(file.path, map_location="cpu", weights_only=True)
        if isinstance(held, torch.Tensor):
            held = {"X": held}
        if not isinstance(held, Mapping):
            raise file.refuse(f"holds a {type(held).__name__}", "give a tensor, or a dictionary with X and y")
        tensors = {str(name): value for name, value in held.items() if isinstance(value, torch.Tensor)}
        x, y = choose_members(file, {name: tuple(tensor.shape) for name, tensor in tensors.items()}, labels)
        return _array(file, tensors[x]), None if y is None else _array(file, tensors[y])


def _array(file: DataFile, tensor: torch.Tensor) -> np.ndarray:
    if tensor.layout is not torch.strided or tensor.is_quantized:
        raise file.refuse("holds a sparse or quantised tensor", "give dense tensors of numbers")
    if tensor.dtype.is_floating_point and tensor.dtype not in (torch.float64, torch.float32, torch.float16):
        tensor = tensor.to(torch.float32)  # bfloat16 and the 8-bit formats, which NumPy does not have
    return np.asarray(tensor.detach().resolve_neg().numpy())
