"""`python -m labkit tables`: every table of the chapters, beside what they printed."""

import argparse
import json
from pathlib import Path

import pandas as pd

from labkit.comparison import as_markdown, compare, judged, notes
from labkit.experiments.catalogue import TABLES, Table
from labkit.experiments.seeds import workers
from labkit.published import printed, published

SEEDS = 40


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--chapter", choices=sorted({t.chapter for t in TABLES}))
    parser.add_argument("--only", choices=[t.id for t in TABLES], metavar="ID")
    parser.add_argument("--real", action="store_true", help="add real sockets")
    parser.add_argument(
        "--naive", action="store_true",
        help="with --real: also the herd without jitter, which takes minutes",
    )  # fmt: skip
    parser.add_argument("--seeds", type=_seeds, default=SEEDS, help="default: 40")
    parser.add_argument(
        "--out", type=Path, metavar="DIR", help="CSV, Markdown, figures"
    )
    parser.add_argument("--no-figures", action="store_true", help="with --out")
    parser.add_argument("--json", type=Path, metavar="FILE")


def _seeds(text: str) -> int:
    if not (text.isascii() and text.isdigit() and 1 <= int(text) <= 10_000):
        raise argparse.ArgumentTypeError(f"{text!r} is no number from 1 to 10000")
    return int(text)


def main(args: argparse.Namespace) -> int:
    chosen = [
        table
        for table in TABLES
        if args.chapter in (None, table.chapter) and args.only in (None, table.id)
    ]
    results = {}
    with workers():
        for table in chosen:
            results[table.id] = compute(table, args.seeds, args.real, args.naive)
            print(as_text(table, results[table.id]), flush=True)
    if args.json:
        write_json(results, args.json)
    if args.out:
        write_folder(results, args.out)
        if not args.no_figures:
            from labkit.figures import write  # matplotlib, only where it is needed

            write(results, args.out)
    return 0


def compute(table: Table, seeds: int, real: bool = False, naive: bool = False) -> dict:
    """One table as data: rows with verdicts, the chapter's rows, the clock."""
    theirs = published(table.id)
    rows = [] if table.clock == "real" else judged(table.run(seeds), theirs)
    result = {
        "question": table.question,
        "clock": table.clock,
        "rows": rows,
        "published": printed(theirs),
    }
    if table.clock == "real":
        result["skipped"] = "it takes real time: ask for it with --real"
        if real:
            rows += judged(table.run(seeds), theirs)
            result["skipped"] = "" if rows else "run `make setup-local` first"
    elif real and table.real:
        more = {}
        if table.id == "14.jitter" and not naive:
            more["policies"] = ("full",)
        result["real_rows"] = judged(table.run(1, "real", **more), theirs)
    return result


def as_text(table: Table, result: dict) -> str:
    """A table for the terminal."""
    lines = compare(table.keys, result, published(table.id))
    shown = lines.to_string(index=False) if len(lines) else ""
    told = [f"\n{heading(table)}", shown, *notes(result)]
    return "\n".join(line for line in told if line)


def heading(table: Table) -> str:
    clock = "" if table.clock == "none" else f"  [{table.clock} clock]"
    return f"{table.id}  {table.question}{clock}"


def write_json(results: dict[str, dict], file: Path) -> None:
    """All tables in one file: `{"14.ttft": {"rows": [...], ...}, ...}`."""
    file.parent.mkdir(parents=True, exist_ok=True)
    text = json.dumps(results, indent=1, ensure_ascii=False, allow_nan=False)
    file.write_text(text + "\n", encoding="utf-8", newline="\n")


def write_folder(results: dict[str, dict], folder: Path) -> None:
    """A CSV a table, and all of them as Markdown and as JSON."""
    folder.mkdir(parents=True, exist_ok=True)
    pages = []
    for table in TABLES:
        if table.id in results:
            result = results[table.id]
            frame = pd.DataFrame(result["rows"])
            text = frame.to_csv(index=False, lineterminator="\n")
            file = folder / f"{table.id}.csv"
            file.write_text(text, encoding="utf-8", newline="\n")
            lines = compare(table.keys, result, published(table.id))
            told = [f"## {heading(table)}\n", as_markdown(lines), *notes(result)]
            pages.append("\n".join(told) + "\n")
    page = "# Tables\n\n" + "\n".join(pages)
    (folder / "tables.md").write_text(page, encoding="utf-8", newline="\n")
    write_json(results, folder / "tables.json")
