"""Collect what `gradrank reproduce all -o FOLDER` wrote: figures beside this file, claims as one Markdown page.

python docs/figures/reproduced.py FOLDER     # writes reproduced-*.png and ../reproduction.md

The sections of figures that FOLDER does not have stay as they are.
"""

import json
import sys
from pathlib import Path

from gradrank.report.claims import Claim, claims_table
from gradrank.reproduce.catalogue import CATALOGUE

HERE = Path(__file__).parent


def claims_of(body: dict) -> list[Claim]:
    """Return the claims of a claims.json, what was withheld as NaN."""
    rows = [{key: value for key, value in row.items() if key != "holds"} for row in body["claims"]]
    return [Claim(**{key: float("nan") if value is None else value for key, value in row.items()}) for row in rows]


def section(folder: Path) -> str:
    """Copy the figures of one folder and return its part of the page."""
    body = json.loads((folder / "claims.json").read_text(encoding="utf-8"))
    one = CATALOGUE[body["figure"]]
    claims = claims_of(body)
    lines = [f"## {one.title}", "", one.setting, ""]
    for picture in sorted(folder.glob("*.png")):
        (HERE / f"reproduced-{picture.name}").write_bytes(picture.read_bytes())
        lines += [f"![{one.title}](figures/reproduced-{picture.name})", ""]
    version = "quick version" if body["quick"] else "full version"
    lines += [f"{sum(claim.holds for claim in claims)} of {len(claims)} claims hold ({version}).", ""]
    table = claims_table(claims)
    lines += ["| " + " | ".join(table.columns) + " |", "|" + "---|" * len(table.columns)]
    lines += ["| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in table.rows]
    return "\n".join(lines)


def earlier_sections(page: str) -> dict[str, str]:
    """Return the sections of the page as it was, by their titles."""
    parts = page.split("\n## ")[1:]
    return {part.partition("\n")[0]: f"## {part.strip()}" for part in parts}


if __name__ == "__main__":
    page = HERE.parent / "reproduction.md"
    parts = earlier_sections(page.read_text(encoding="utf-8"))
    for name, one in CATALOGUE.items():
        folder = Path(sys.argv[1]) / name
        if (folder / "claims.json").exists():
            parts[one.title] = section(folder)
    intro = (
        "# The paper, claim by claim\n\nMade by `gradrank reproduce all` and `docs/figures/reproduced.py`; "
        "[experiments.md](experiments.md) says when a claim holds.\n"
    )
    ordered = [parts[one.title] for one in CATALOGUE.values() if one.title in parts]
    page.write_text("\n\n".join([intro, *ordered]) + "\n", encoding="utf-8")
