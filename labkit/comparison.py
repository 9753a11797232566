"""Our rows beside the chapter's: judged, laid out for reading, and written down."""

import json
from collections import Counter
from collections.abc import Iterable, Sequence

import pandas as pd

from labkit.published import is_cell, verdict
from labkit.shown import shown

ABOUT = ("verdict", "reason", "skipped")


def judged(frame: pd.DataFrame, theirs: list[dict]) -> list[dict]:
    """The rows of a table, ready for JSON, each with its verdict and the reason."""
    rows = json.loads(frame.to_json(orient="records"))
    for row in rows:
        row["verdict"], row["reason"] = verdict(row, theirs)
        row.pop("skipped", None)
    return rows


def compare(keys: Sequence[str], result: dict, theirs: list[dict]) -> pd.DataFrame:
    """The table for reading: one line a number, the chapter's beside ours.

    A table of which the chapter prints nothing keeps its own shape, with the rows of
    the real clock below the others. One with a row a seed shows only its summaries.
    What the chapter prints beyond our rows comes last.
    """
    rows = [row for row in result["rows"] if row.get("summary", "") is not None]
    if not (theirs and rows):
        return _shape_kept(rows, result.get("real_rows", []))
    named = [key for key in keys if key != "seed"]
    lines, found = [], []
    for row in rows:
        name = {key: row[key] for key in named}
        chapters, real = _find(theirs, name), _find(result.get("real_rows", []), name)
        found.append(chapters)
        lines += _lines(name, row, chapters, real, result)
    for chapters in theirs:
        if chapters not in found:
            name = {key: chapters.get(key) for key in named}
            lines += _lines(name, {"verdict": "context"}, chapters, {}, result)
    return _once_a_row(pd.DataFrame(lines))


def _lines(name: dict, ours: dict, chapters: dict, real: dict, result: dict) -> list:
    """The lines of one row: a line for each number that anybody has."""
    cells = {column: cell for column, cell in chapters.items() if is_cell(cell)}
    lines = []
    for column in dict.fromkeys([*ours, *cells]):
        line = {
            "row": _named(name),
            "column": column,
            "chapter": _chapters(column, cells.get(column)),
            "labkit": shown(column, ours[column]) if column in ours else "",
        }
        empty = not (line["chapter"] or line["labkit"])
        if column in (*name, *ABOUT, "seed") or empty:
            continue
        if "real_rows" in result:
            line["real"] = shown(column, real.get(column)) if real else ""
        lines.append(line | {"verdict": ours["verdict"]})
    return lines


def _named(name: dict) -> str:
    """What a row is called: its one key, or all of them by name."""
    if len(name) == 1:
        (column,) = name
        return shown(column, name[column])
    return ", ".join(f"{key} {shown(key, value)}" for key, value in name.items())


def _chapters(column: str, cell: dict | None) -> str:
    """What the chapter printed, with the range that ours is held to, if any."""
    if cell is None:
        return ""
    printed = shown(column, cell["value"])
    if "low" not in cell:
        return printed
    low, high = shown(column, cell["low"]), shown(column, cell["high"])
    return f"{printed} ({low} to {high})"


def notes(result: dict) -> list[str]:
    """What the verdicts leave open: why a row differs, or was skipped."""
    skipped = result.get("skipped")
    return [f"skipped: {skipped}"] * bool(skipped) + [
        f"{row['verdict']}: {row['reason']}"
        for row in result["rows"]
        if row["verdict"] == "differs"
        or (row["verdict"] == "skipped" and "real_rows" not in result)
    ]


def _shape_kept(rows: list[dict], real: list[dict]) -> pd.DataFrame:
    told = [
        ({"clock": clock} if real else {})
        | {name: shown(name, value) for name, value in row.items() if name not in ABOUT}
        for clock, measured in (("virtual", rows), ("real", real))
        for row in measured
        if not (real and row["verdict"] == "skipped")
    ]
    return pd.DataFrame(told)


def _find(rows: Iterable[dict], name: dict) -> dict:
    for row in rows:
        if all(row.get(key) == value for key, value in name.items()):
            return row
    return {}


def _once_a_row(lines: pd.DataFrame) -> pd.DataFrame:
    """Say the row and its verdict on its first line only."""
    again = lines["row"].eq(lines["row"].shift())
    for column in ("row", "verdict"):
        lines[column] = lines[column].mask(again, "")
    return lines


def as_markdown(lines: pd.DataFrame) -> str:
    """A table in Markdown, without the help of another package."""
    cells = [list(lines.columns), ["---"] * len(lines.columns)]
    cells += lines.astype(str).values.tolist()
    cells = [[text.replace("|", "\\|") for text in row] for row in cells]
    return "".join(f"| {' | '.join(row)} |\n" for row in cells)


KEY = (
    "exact: equal to what the chapter printed, or to what follows from it. fitted: "
    "equal, and a parameter of ours was chosen to make it so. within: a time, or a "
    "count left to chance, inside the range that stands behind it. differs: with the "
    "reason. context: nothing to compare with."
)


def tally(results: Iterable[dict]) -> str:
    """How many rows got which verdict."""
    counts = Counter(row["verdict"] for result in results for row in result["rows"])
    told = ", ".join(f"{count} {verdict}" for verdict, count in counts.most_common())
    return f"{counts.total()} rows: {told}"
