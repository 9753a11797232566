"""What the chapters printed, and the verdict on each row that we computed.

`data/published/chapter-NN.json` maps a table's id to rows. In a row, a plain value is
part of the key that finds our row; an object is a cell to compare:

    {"value": 791, "kind": "T", "low": 770, "high": 850}

kind P (printed) or D (follows by arithmetic): ours must be equal. fitted: equal, and
a parameter of ours was chosen to make it so. T (a time or a count left to chance):
ours must lie from low to high. context: shown, not compared. A row's "reason" says
why ours differs, where that is known. Without the files, every row still computes.
"""

import json
import math
from pathlib import Path

FOLDER = Path(__file__).resolve().parent.parent / "data" / "published"
MET = {
    "P": "exact",
    "D": "exact",
    "fitted": "fitted",
    "T": "within",
    "context": "context",
}
# A row is as good as the weakest thing that can be said of one of its cells.
WEAKEST_FIRST = ("differs", "within", "fitted", "exact", "context")
BEYOND = "the chapter prints no such row"


def published(table_id: str) -> list[dict]:
    """The chapter's rows of one table; empty where there are none."""
    file = FOLDER / f"chapter-{table_id.partition('.')[0]}.json"
    if not file.is_file():
        return []
    return json.loads(file.read_text(encoding="utf-8")).get(table_id, [])


def is_cell(value) -> bool:
    return isinstance(value, dict)


def verdict(row: dict, theirs: list[dict]) -> tuple[str, str]:
    """The verdict on one of our rows, and the reason where one is due.

    >>> cell = {"value": 65, "kind": "T", "low": 59, "high": 90}
    >>> verdict({"mode": "streaming", "ms": 60.0}, [{"mode": "streaming", "ms": cell}])
    ('within', '')
    >>> verdict({"mode": "streaming", "ms": 95.0}, [{"mode": "streaming", "ms": cell}])
    ('differs', 'ms: 95, the chapter has 65 (59 to 90 would do)')
    """
    if row.get("skipped"):
        return "skipped", row["skipped"]
    match = next((their for their in theirs if _same_key(row, their)), None)
    if match is None:
        return "context", BEYOND
    cells = {name: cell for name, cell in match.items() if is_cell(cell)}
    met = {
        name: MET[cell["kind"]] if _meets(row.get(name), cell) else "differs"
        for name, cell in cells.items()
    }
    worst = min(met.values(), key=WEAKEST_FIRST.index)
    if worst != "differs":
        return worst, ""
    amiss = [_said(n, row.get(n), cells[n]) for n in met if met[n] == "differs"]
    return worst, match.get("reason") or "; ".join(amiss)


def _same_key(ours: dict, theirs: dict) -> bool:
    return all(
        ours.get(name) == value
        for name, value in theirs.items()
        if name != "reason" and not is_cell(value)
    )


def _meets(value, cell: dict) -> bool:
    if cell["kind"] == "context":
        return True
    if cell["kind"] == "T":
        return value is not None and cell["low"] <= value <= cell["high"]
    if isinstance(value, float) and isinstance(cell["value"], (int, float)):
        return math.isclose(value, cell["value"], rel_tol=1e-12)
    return value == cell["value"]


def _said(name: str, value, cell: dict) -> str:
    shown = f"{value:g}" if isinstance(value, float) else f"{value}"
    room = f" ({cell['low']:g} to {cell['high']:g} would do)" if "low" in cell else ""
    return f"{name}: {shown}, the chapter has {cell['value']}{room}"


def printed(theirs: list[dict]) -> list[dict]:
    """The chapter's rows as it printed them: values without what they are held to."""
    return [
        {
            name: value["value"] if is_cell(value) else value
            for name, value in row.items()
            if name != "reason"
        }
        for row in theirs
    ]
