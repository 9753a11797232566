"""Our rows beside the chapter's: judged, laid out for reading, and written down."""

import json
from collections.abc import Iterable, Sequence

import pandas as pd

from labkit.published import is_cell, verdict

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

    A table of which the chapter prints nothing keeps its own shape. One with a row a
    seed shows only its summaries.
    """
    rows = [row for row in result["rows"] if row.get("summary", "") is not None]
    if not (theirs and rows):
        return _shape_kept(rows)
    lines = []
    for row in rows:
        name = {key: row[key] for key in keys if key != "seed"}
        chapters, real = _find(theirs, name), _find(result.get("real_rows", []), name)
        for column in row:
            both = chapters.get(column), row[column]
            if column in (*keys, *ABOUT, "seed") or not any(map(_shown, both)):
                continue
            line = {
                "row": ", ".join(_shown(part) for part in name.values()),
                "column": column,
                "chapter": _shown(_value(chapters.get(column))),
                result["clock"]: _shown(row[column]),
            }
            if "real_rows" in result:
                line["real"] = _shown(real.get(column))
            lines.append(line | {"verdict": row["verdict"]})
    return _once_a_row(pd.DataFrame(lines))


def notes(result: dict) -> list[str]:
    """What the verdicts leave open: why a row differs, or was skipped."""
    skipped = result.get("skipped")
    return [f"skipped: {skipped}"] * bool(skipped) + [
        f"{row['verdict']}: {row['reason']}"
        for row in result["rows"]
        if row["verdict"] in ("differs", "skipped")
    ]


def _shape_kept(rows: list[dict]) -> pd.DataFrame:
    shown = [{n: _shown(v) for n, v in row.items() if n not in ABOUT} for row in rows]
    return pd.DataFrame(shown)


def _find(rows: Iterable[dict], name: dict) -> dict:
    for row in rows:
        if all(row.get(key) == value for key, value in name.items()):
            return row
    return {}


def _value(cell):
    return cell["value"] if is_cell(cell) else cell


def _shown(value) -> str:
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:,.6f}".rstrip("0").rstrip(".")
    return f"{value:,}" if type(value) is int else str(value)


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
