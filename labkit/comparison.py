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
    """One line for each number: what names it, the chapter's, ours, the verdict.

    A table with one row a seed shows only its summaries here.
    """
    lines = []
    for row in _summaries(result["rows"]):
        name = {key: row[key] for key in keys if key != "seed"}
        chapters = _find(theirs, name)
        real = _find(result.get("real_rows", []), name)
        for column in row:
            if column in keys or column in ABOUT or column == "seed":
                continue
            line = {"row": ", ".join(_shown(part) for part in name.values())}
            line["column"] = column
            line["chapter"] = _shown(_value(chapters.get(column)))
            line["labkit"] = _shown(row[column])
            if "real_rows" in result:
                line["real"] = _shown(real.get(column))
            lines.append(line | {"verdict": row["verdict"], "why": row["reason"]})
    return _once_a_row(pd.DataFrame(lines))


def _summaries(rows: list[dict]) -> list[dict]:
    return [row for row in rows if row.get("summary", "") is not None]


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
    return f"{value:,.10g}" if isinstance(value, float) else str(value)


def _once_a_row(lines: pd.DataFrame) -> pd.DataFrame:
    """Say the row, its verdict and the reason on its first line only."""
    again = lines["row"].eq(lines["row"].shift())
    for column in ("row", "verdict", "why"):
        lines[column] = lines[column].mask(again, "")
    return lines if lines["why"].any() else lines.drop(columns="why")


def as_markdown(lines: pd.DataFrame) -> str:
    """A table in Markdown, without the help of another package."""
    cells = [list(lines.columns), ["---"] * len(lines.columns)]
    cells += lines.astype(str).values.tolist()
    cells = [[text.replace("|", "\\|") for text in row] for row in cells]
    return "".join(f"| {' | '.join(row)} |\n" for row in cells)
