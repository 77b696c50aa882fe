"""What a measurement says in words: labels, the header line, and the tables that terminal and page share."""

from collections.abc import Mapping, Sequence
from typing import Any

from gradrank.gradient.regime import Regime
from gradrank.measurement.ensemble import Ensemble, Mean
from gradrank.measurement.predictions import NOT_ASKED_FOR
from gradrank.measurement.record import Measurement
from gradrank.report.tables import Table, number, percent, with_error

PART_LABELS = {
    "gradient": "gradient G",
    "residue_spike": "residue spike S₁",
    "interpolant": "interpolant S₁₂",
    "data_spike": "data spike S₂",
    "jacobian_spike": "Jacobian spike λS₃",
    "jacobian_remainder": "Jacobian remainder λE₂",
    "weight_decay": "weight decay λWᵀ",
    "remainder": "remainder E",
}
DIRECTION_LABELS = {
    "q": "q",
    "bulk_residue": "X_Bᵀr",
    "bulk_labels": "X_Bᵀy",
    "residue_right": "a∘μ",
    "data_right": "v(S₂)",
}
SHOWN_OUTLIERS = 5
VERDICTS = {
    "residue_spike": "the residue spike S₁ should dominate",
    "interpolant": "the interpolant S₁₂ (direction q) should dominate",
    "data_spike": "the data spike (direction q) should dominate",
    "both": "residue and data spikes should be of one order",
}


def direction_label(name: str) -> str:
    """Return a direction's symbol."""
    if name.startswith("target_"):
        return "b" + "".join("₀₁₂₃₄₅₆₇₈₉"[int(digit)] for digit in name.removeprefix("target_"))
    return DIRECTION_LABELS.get(name, name)


def headline(result: Measurement | Ensemble) -> str:
    """Return one line: what was measured."""
    one = result.measurements[0] if isinstance(result, Ensemble) else result
    n, d, m = one.shape
    inputs, network = one.description["inputs"], one.description["network"]
    source = inputs.get("name") or inputs.get("path") or _synthetic(inputs)
    seeds = f"{len(result.seeds)} seeds from {result.seeds[0]}" if isinstance(result, Ensemble) else f"seed {one.seed}"
    scaling = network["scaling"] if isinstance(network["scaling"], str) else f"γ = {network['scaling']:g}"
    return (
        f"{source} · n, d, m = {n}, {d}, {m} · {network['activation']}, {scaling}, {network['inner']} weights · "
        f"{one.description['loss']} loss · {one.split['kind']} split, {one.centring['kind']} centring · "
        f"{one.environment['dtype']} on {one.environment['device']} · {seeds}"
    )


def _synthetic(inputs: Mapping[str, Any]) -> str:
    if inputs["kind"] == "given-array":
        return "array"
    spike = "no spike" if inputs["direction"] == "none" else f"ν = {inputs['nu']:g}"
    return f"spiked Gaussian, {spike}, α = {inputs['alpha']:.4g}"


def tables(result: Measurement | Ensemble) -> list[Table]:
    """Return the table of parts, the table of leading singular values, and the predicted outliers beside the measured."""
    found = [_parts(result), _singular_values(result)]
    if isinstance(result, Measurement) and result.spectrum_prediction is not None:
        found.append(_outliers(result.spectrum_prediction))
    return found


def _outliers(prediction: Mapping[str, Any]) -> Table:
    columns = ["", "predicted", "measured", "difference", "overlap"]
    rows = []
    for index, row in enumerate(prediction["outliers"][:SHOWN_OUTLIERS]):
        difference = "–" if row["difference"] is None else f"{100 * row['difference']:+.1f} %"
        rows.append(
            [f"σ{index + 1}", number(row["predicted"]), number(row["measured"]), difference, number(row["overlap"], 3)]
        )
    rows.append(["edge", number(prediction["edge"]), "", "", ""])
    more = len(prediction["outliers"]) - SHOWN_OUTLIERS
    note = (
        f"predicted from inputs and residue by {prediction['method']}; overlap: predicted ⟨u, v⟩² with the population's vector"
        + (f"; {more} more in the JSON" if more > 0 else "")
    )
    return Table("Outliers of the spectrum", columns, rows, note)


def _parts(result: Measurement | Ensemble) -> Table:
    columns = ["part", "norm", "/ ‖E‖", "share of ‖G‖²", "|cos| u₁", "|cos| v₁"]
    rows = []
    for name in result.norms:
        cells = [_cell(result.norms, name), _cell(result.ratios, name), _cell(result.shares, name, as_share=True)]
        sides = result.part_alignments.get(name)
        cells += [_plain(sides["left"]), _plain(sides["right"])] if sides else ["–", "–"]
        rows.append([PART_LABELS.get(name, name), *cells])
    note = "|cos|: of a part's own left and right vector with the gradient's u₁ and v₁"
    return Table("Parts of the gradient (spectral norms)", columns, rows, note)


def _singular_values(result: Measurement | Ensemble) -> Table:
    one = result.measurements[0] if isinstance(result, Ensemble) else result
    left, right = list(one.left_alignments), list(one.right_alignments)
    columns = ["", "σ", *(direction_label(name) for name in (*left, *right))]
    rows = []
    for index in range(one.k):
        value = result.singular_values[index]
        u, v = result.alignments[f"u{index + 1}"], result.alignments[f"v{index + 1}"]
        cells = [*(u[name] for name in left), *(v[name] for name in right)]
        shown = with_error(value.mean, value.standard_error) if isinstance(value, Mean) else number(float(value))
        rows.append([f"σ{index + 1}", shown, *(_plain(cell, 2) for cell in cells)])
    left_chance, right_chance = one.chance["left"], one.chance["right"]
    note = (
        "q: the data's spike direction; X_Bᵀr, X_Bᵀy: bulk times residue and labels; b_k: target directions (with u_i); "
        "a∘μ, v(S₂): right vectors of residue and data spike (with v_i); "
        f"chance: {left_chance:.3f} for left, {right_chance:.3f} for right vectors"
    )
    return Table(
        f"Top {one.k} singular values, and the |cos| of their vectors with named directions", columns, rows, note
    )


def _cell(table: Mapping[str, Any], name: str, *, as_share: bool = False) -> str:
    value = table.get(name)
    if value is None:
        return "100 %" if as_share and name == "gradient" and table else "–"
    if isinstance(value, float):
        return percent(value) if as_share else number(value)
    if as_share:
        return f"{100 * value.mean:.1f} ± {100 * value.standard_error:.1f} %"
    return with_error(value.mean, value.standard_error)


def _plain(value: Any, digits: int = 3) -> str:
    """Return a cosine, of one draw or the mean of several."""
    mean = value if isinstance(value, float) else value.mean
    return "–" if mean != mean else f"{mean:.{digits}f}"


def remarks(result: Measurement | Ensemble) -> list[str]:
    """Return what the numbers mean and which are withheld, one sentence each."""
    one = result.measurements[0] if isinstance(result, Ensemble) else result
    lines = [verdict(one.regime)]
    if isinstance(result, Ensemble):
        lines.append(
            f"β of the draws: {with_error(result.beta.mean, result.beta.standard_error)} (mean of single draws' values)"
        )
    elif one.beta == one.beta:
        lines.append(f"β of this draw: {number(one.beta, 3)} (one draw's value, not an estimate of the exponent)")
    lines.append(f"the parts add up to the gradient to {one.reconstruction_error:.1e} (relative)")
    if isinstance(result, Measurement):
        lines += theory_remarks(result)
    body = result.to_dict()["status"]
    lines += [
        f"{key}: {reason}"
        for key, reason in body.items()
        if key not in ("measurement", "regime") and reason != NOT_ASKED_FOR
    ]
    return lines


def theory_remarks(one: Measurement) -> list[str]:
    """Return the distance to the predicted law, the counted spikes and the exponents, one sentence each."""
    lines = []
    if one.spectrum_prediction is not None and one.spectrum_prediction["ks"] is not None:
        lines.append(
            f"predicted spectrum: Kolmogorov-Smirnov distance {number(one.spectrum_prediction['ks'], 2)} "
            f"over {one.spectrum_prediction['size']} singular values"
        )
    if one.spikes is not None and one.spikes["count"] is not None:
        lines.append(f"spikes: {one.spikes['count']} at level {one.spikes['level']:g} ({one.spikes['null']} null)")
    if one.exponents is not None:
        lines.append(exponents_sentence(one.exponents))
    return lines


def exponents_sentence(found: Mapping[str, Any]) -> str:
    """Return ν and α with their standard errors, or that they are withheld."""
    shown = [
        f"{symbol} = {with_error(found[name], found[f'{name}_error'])}"
        if found[name] is not None
        else f"{symbol} withheld ({found['status'][name]})"
        for symbol, name in (("ν", "nu"), ("α", "alpha"))
    ]
    return f"exponents of the inputs: {', '.join(shown)}"


def verdict(expected: Regime) -> str:
    """Return the theory's expectation as a sentence."""
    if expected.dominant is None:
        return f"theory: no prediction ({expected.status})"
    rank = f", the gradient of rank {expected.rank}" if expected.rank else ""
    doubts = [c.text for c in expected.conditions if c.holds is False and not c.text.startswith("β")]
    but = f"; not satisfied here: {'; '.join(doubts)}" if doubts else ""
    return f"theory: {VERDICTS[expected.dominant]}{rank} ({expected.theorem}){but}"


def labelled_directions(table: Mapping[str, Sequence[float]]) -> dict[str, Sequence[float]]:
    """Return the table with the directions' symbols as keys."""
    return {direction_label(name): values for name, values in table.items()}
