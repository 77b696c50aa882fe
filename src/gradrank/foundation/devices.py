"""Devices by name."""

import torch

from gradrank.foundation.errors import unusable


def device_named(name: str) -> torch.device:
    """Return the device "cpu", "cuda" (the first) or "cuda:k".

    Raises
    ------
    InputError
        If it is not there; the message says which are.
    """
    available = ["cpu"] + [f"cuda:{index}" for index in range(torch.cuda.device_count())]
    if name == "cuda" and len(available) > 1:
        return torch.device("cuda:0")
    if name not in available:
        none = "; PyTorch sees no CUDA device here" if "cuda" in str(name) and len(available) == 1 else ""
        raise unusable("device", name, f"give one of {', '.join(available)}{none}")
    return torch.device(name)
