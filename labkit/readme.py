"""`python -m labkit readme`: the README's figures, made anew from data/results/.

A figure in the README stands between two comments, `<!-- NAME: begin -->` and
`<!-- NAME: end -->`. What is between them is written by a command, never by hand.
"""

import argparse
import json
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
README = ROOT / "README.md"
RESULTS = ROOT / "data" / "results" / "tables.json"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """No options: it reads data/results/ and writes the README."""


def main(args: argparse.Namespace) -> int:
    results = json.loads(RESULTS.read_text(encoding="utf-8"))
    write_block("results", highlights(results))
    return 0


def highlights(results: dict) -> str:
    """A few of the chapters' claims, as the committed results have them."""
    jitter = {r["policy"]: r for r in _rows(results, "14.jitter", summary="median")}
    naive, full = jitter["exponential"], jitter["full"]
    herd = _rows(results, "14.herd20", summary="median")[0]
    gate = _rows(results, "14.gate")[0]
    whole, streamed = _rows(results, "14.ttft")
    twice = _rows(results, "14.idempotency", key="no", attempt=1)[0]
    once = _rows(results, "14.idempotency", key="yes", attempt=1)[0]
    first, later = streamed["first_visible_ms"], whole["first_visible_ms"]
    lines = {
        "the first word, streamed": f"after {first:g} ms instead of {later:g}",
        "the last word, streamed": f"after {streamed['complete_ms']:g} ms, no sooner",
        "100 clients, no jitter": _herd(naive),
        "100 clients, full jitter": _herd(full),
        "20 clients, capacity 3": _herd(herd),
        "the same behind a gate of 3": _herd(gate),
        "asked twice, no idempotency key": f"{twice['billed']} answers billed",
        "asked twice with one key": f"{once['billed']} answer billed, and received",
    }
    rows = [f"| {what} | {said} |" for what, said in lines.items()]
    head = "| on the virtual clock; herds: medians of 40 runs | |"
    return "\n".join([head, "|---|---|", *rows])


def _herd(row: dict) -> str:
    wall_s = row["wall_s"] if "wall_s" in row else row["wall_ms"] / 1000
    return f"{row['requests']:.0f} requests, {wall_s:.1f} s"


def _rows(results: dict, table_id: str, **name) -> list[dict]:
    return [
        row
        for row in results[table_id]["rows"]
        if all(row[key] == value for key, value in name.items())
    ]


def marks(name: str) -> tuple[str, str]:
    return f"<!-- {name}: begin -->", f"<!-- {name}: end -->"


def read_block(name: str, text: str) -> str:
    """What stands between the marks of a block; ValueError without them."""
    begin, end = marks(name)
    if text.count(begin) != 1 or text.count(end) != 1:
        raise ValueError(f"README.md needs one {begin} and one {end}")
    return text.partition(begin)[2].partition(end)[0].strip()


def write_block(name: str, content: str, file: Path = README) -> None:
    """Put `content` between the marks of a block."""
    text = file.read_text(encoding="utf-8")
    read_block(name, text)
    begin, end = marks(name)
    before, after = text.partition(begin)[0], text.partition(end)[2]
    new = f"{before}{begin}\n{content}\n{end}{after}"
    file.write_text(new, encoding="utf-8", newline="\n")
