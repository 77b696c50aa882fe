"""Imports go downwards only: a floor of the house never imports a higher one."""

import ast
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[1] / "src" / "gradrank"
FLOORS = [
    "foundation",
    "linalg",
    "problem",
    "initialization",
    "gradient",
    "onestep",
    "flow",
    "report",
    "measurement",
    "experiments",
    "reproduce",
    "commands",
    "cli",
    "__main__",
]


def floor(module: str) -> int | None:
    part = module.split(".")[1] if module.count(".") else ""
    return FLOORS.index(part) if part in FLOORS else None


@pytest.mark.parametrize("path", sorted(SOURCE.rglob("*.py")), ids=lambda path: str(path.relative_to(SOURCE)))
def test_imports_go_downwards(path: Path) -> None:
    module = "gradrank." + ".".join(path.relative_to(SOURCE).with_suffix("").parts)
    here = floor(module)
    if here is None:
        return
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("gradrank."):
            there = floor(node.module)
            assert there is None or there <= here, f"{module} imports {node.module}, a higher floor"
