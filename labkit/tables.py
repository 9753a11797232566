"""`python -m labkit tables`: every table of the chapters, beside what they printed."""

import argparse
import json
import tempfile
import textwrap
from pathlib import Path

import pandas as pd

from labkit.comparison import KEY, as_markdown, compare, judged, notes, tally
from labkit.experiments.catalogue import TABLES, Table
from labkit.experiments.seeds import workers
from labkit.published import printed, published

SEEDS = 40


def add_arguments(parser: argparse.ArgumentParser) -> None:
    chapters = sorted({table.chapter for table in TABLES})
    parser.add_argument("--chapter", choices=chapters, help="only this chapter's")
    parser.add_argument(
        "--only", action="append", type=_table_id, metavar="ID",
        help="only this table, as 14.jitter or jitter; may be given again",
    )  # fmt: skip
    parser.add_argument("--real", action="store_true", help="add real sockets")
    parser.add_argument(
        "--naive", action="store_true",
        help="with --real: also the herd without jitter, which takes minutes",
    )  # fmt: skip
    parser.add_argument("--seeds", type=_seeds, default=SEEDS, help="default: 40")
    parser.add_argument(
        "--out", type=_folder, metavar="DIR", help="CSV, Markdown, JSON and figures"
    )
    parser.add_argument("--no-figures", action="store_true", help="with --out")
    parser.add_argument(
        "--json", type=_file, metavar="FILE", help="all tables, by their ids"
    )


def _table_id(text: str) -> str:
    found = [t.id for t in TABLES if text in (t.id, t.id.partition(".")[2])]
    if len(found) == 1:
        return found[0]
    known = ", ".join(table.id for table in TABLES)
    raise argparse.ArgumentTypeError(f"there is no table {text!r}; there are: {known}")


def _file(text: str) -> Path:
    """A file that can be written, in a folder that is there."""
    file = Path(text)
    if text == "-" or file.is_dir() or not file.parent.is_dir():
        raise argparse.ArgumentTypeError(f"{text!r} is no file in a folder that exists")
    return file


def _folder(text: str) -> Path:
    """A folder that can be written, made if need be: before anything is computed."""
    try:
        Path(text).mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=text).close()
    except OSError as error:
        said = f"{text!r} cannot be written ({error.strerror})"
        raise argparse.ArgumentTypeError(said) from None
    return Path(text)


def _seeds(text: str) -> int:
    if not (text.isascii() and text.isdigit() and 1 <= int(text) <= 10_000):
        raise argparse.ArgumentTypeError(f"{text!r} is no number from 1 to 10000")
    return int(text)


def main(args: argparse.Namespace) -> int:
    chosen = [
        table
        for table in TABLES
        if args.chapter in (None, table.chapter)
        and (not args.only or table.id in args.only)
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
        pictures = "" if args.no_figures else ", and figures (PNG and SVG)"
        written = f"tables.md, tables.json, a CSV a table{pictures}"
        print(f"\nwritten to {args.out}/: {written}")
    print(f"\n{tally(results.values())}\n{textwrap.fill(KEY, 88)}")
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
    told = [f"\n{heading(table, result)}", shown, *notes(result)]
    return "\n".join(line for line in told if line)


def heading(table: Table, result: dict) -> str:
    """Its id, its question, and what it was measured on."""
    about = [] if table.clock == "none" else [f"{table.clock} clock"]
    if "real_rows" in result:
        about.append("real clock: one run")
    if not result["published"]:
        about.append("the chapter prints no such table")
    told = f"{table.id}  {table.question}"
    return f"{told}  [{'; '.join(about)}]" if about else told


def write_json(results: dict[str, dict], file: Path) -> None:
    """All tables in one file: `{"14.ttft": {"rows": [...], ...}, ...}`."""
    text = json.dumps(results, indent=1, ensure_ascii=False, allow_nan=False)
    file.write_text(text + "\n", encoding="utf-8", newline="\n")


def write_folder(results: dict[str, dict], folder: Path) -> None:
    """A CSV a table, and all of them as Markdown and as JSON."""
    pages = []
    for table in TABLES:
        if table.id in results:
            result = results[table.id]
            frame = pd.DataFrame(result["rows"])
            text = frame.to_csv(index=False, lineterminator="\n")
            file = folder / f"{table.id}.csv"
            file.write_text(text, encoding="utf-8", newline="\n")
            lines = compare(table.keys, result, published(table.id))
            title = f"## {heading(table, result)}\n"
            told = [title, as_markdown(lines), *notes(result)]
            pages.append("\n".join(told) + "\n")
    page = f"# Tables\n\n{tally(results.values())}. {KEY}\n\n" + "\n".join(pages)
    (folder / "tables.md").write_text(page, encoding="utf-8", newline="\n")
    write_json(results, folder / "tables.json")
