"""`python -m labkit guesses FOLDER`: the guesses of a class, merged into one picture.

Every .json file in the folder and below it is read, as `labkit.save_guesses` wrote it.
What cannot be read is named and left out; no file is changed.
"""

import argparse
from pathlib import Path

from labkit.classroom.guessfiles import GuessFileError, Sheet, read_sheet
from labkit.errors import shorten

PICTURE = Path("out", "guesses.png")
SUFFIXES = (".png", ".svg")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("folder", type=Path, help="where the students' files lie")
    parser.add_argument(
        "--out", type=Path, default=PICTURE, help=f"a .png or .svg ({PICTURE})"
    )
    parser.add_argument("--only", metavar="NN", help="the number of one page")


def main(args: argparse.Namespace) -> int:
    """0 when a picture was written, 1 when there was nothing to draw."""
    if args.out.suffix not in SUFFIXES:
        print(f"--out {args.out.name}: it must end in {' or '.join(SUFFIXES)}")
        return 1
    if not args.folder.is_dir():
        print(f"{args.folder.name}: there is no such folder")
        return 1
    sheets = read_all(args.folder)
    chosen = {
        path: sheet
        for path, sheet in sheets.items()
        if args.only in (None, sheet.notebook)
    }
    if not any(sheet.guesses for sheet in chosen.values()):
        print("no guesses to draw")
        return 1
    say_twice(chosen)
    try:
        draw(list(chosen.values()), args.out)
    except OSError as error:
        print(f"--out {args.out.name}: {error.strerror or error}; name another")
        return 1
    return 0


def read_all(folder: Path) -> dict[Path, Sheet]:
    """The sheets in a folder by their paths in it, in order; says what it skips."""
    sheets = {}
    for path in sorted(folder.rglob("*.json")):
        name = path.relative_to(folder)
        try:
            sheets[name] = read_sheet(path)
        except GuessFileError as error:
            print(f"skipped {shorten(str(name))}: {error}")
    return sheets


def say_twice(sheets: dict[Path, Sheet]) -> None:
    """A student who is there twice for one page counts twice: say so."""
    seen: dict[tuple[str, str], Path] = {}
    for path, sheet in sheets.items():
        first = seen.setdefault((sheet.student, sheet.notebook), path)
        if first != path:
            twice = f"{shorten(str(path))} is of the same student and page as"
            print(f"{twice} {shorten(str(first))}: both count")


def draw(sheets: list[Sheet], out: Path) -> None:
    import pandas as pd

    from labkit.plots.guesses import board
    from labkit.plots.style import save

    columns = ["notebook", "question", "guess", "measured"]
    rows = [
        (sheet.notebook, each.name, each.value, each.was)
        for sheet in sheets
        for each in sheet.guesses
    ]
    table = pd.DataFrame(rows, columns=columns)
    table = table.sort_values("notebook", kind="stable")  # and as first met
    students = len({sheet.student for sheet in sheets})
    note = (
        f"{students} student{'s' if students != 1 else ''}, one dot a guess; upright:"
        " what was measured (the median, where clocks were real)"
    )
    out.parent.mkdir(parents=True, exist_ok=True)
    save(board(table, note), out)
    print(
        f"{len(rows)} guesses of {students} on {table.question.nunique()} questions:"
        f" {out.name}"
    )
