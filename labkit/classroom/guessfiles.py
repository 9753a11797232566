"""Guesses on disk: one file for each student and page, and many of them read again.

    labkit.save_guesses("Ada", "02")    # in a notebook: writes guesses/ada-02.json

The folder lies beside the notebooks, and git does not see it. A file holds the name
that the student gave, the page, and for each question the guess and what was measured.
Merged into one picture by `python -m labkit guesses FOLDER`.
"""

import json
import os
from dataclasses import dataclass
from pathlib import Path

from labkit.classroom.guesses import Guess, all_guesses, is_finite
from labkit.errors import ConfigError, LabkitError, shorten
from labkit.strictjson import parse_object

FOLDER = Path("guesses")  # beside the notebook: a kernel starts in its folder
KIND = "labkit guesses, version 1"
LONGEST = 1_000_000  # bytes; a real one has some thousands
NAMES = 80  # characters of a name, a question's too, at most
MOST = 100  # guesses of one page; each below 1e100, or no axis holds it


class GuessFileError(LabkitError):
    """A file that holds no guesses of ours; the message says why."""


@dataclass(frozen=True)
class Sheet:
    """What one student guessed on one page."""

    student: str
    notebook: str
    guesses: list[Guess]


def save_guesses(student: str, notebook: str, folder: str | Path = FOLDER) -> str:
    """Write down what was guessed in this kernel. Returns a sentence that says where.

    student: a name, or whatever the teacher asks for. notebook: the number of the
    page, "02". Guesses that the student has saved for this page before stay, but for
    those that were made anew.

    Raises ConfigError for a name without a letter or digit, where nothing was guessed
    yet or what no file may hold, where the disk does not take it, and where the file
    is not that student's: nothing is overwritten.
    """
    own = slug("student", student)
    path = Path(folder) / f"{own}-{slug('notebook', notebook)}.json"
    made = {each.name: each for each in all_guesses()}
    if not made:
        raise ConfigError(
            "guesses: there are none yet; run the page first", field="guesses"
        )
    try:
        return _save(path, student.strip(), notebook.strip(), made)
    except OSError as error:
        said = f"folder: cannot write {path.name}: {error.strerror}; name another"
        raise ConfigError(said, field="folder") from None


def _save(path: Path, student: str, notebook: str, made: dict[str, Guess]) -> str:
    kept = {each.name: each for each in _before(path, student, notebook)} | made
    sheet = {
        "kind": KIND,
        "student": student,
        "notebook": notebook,
        "guesses": {
            name: {"guess": each.value, "measured": each.was}
            for name, each in kept.items()
        },
    }
    text = json.dumps(sheet, indent=1) + "\n"
    try:
        _sheet(text)  # what is written can be read
    except ValueError as error:
        raise ConfigError(f"guesses: {error}", field="guesses") from None
    path.parent.mkdir(parents=True, exist_ok=True)
    whole = path.with_suffix(".part")
    whole.write_text(text, encoding="utf-8")
    os.replace(whole, path)  # so a crash leaves the old file or the new one
    return f"{len(kept)} guesses in {path.parent.name}/{path.name}"


def _before(path: Path, student: str, notebook: str) -> list[Guess]:
    """What stands in the file already, if it is this student's."""
    if not path.exists():
        return []
    try:
        sheet = read_sheet(path)
    except GuessFileError as error:
        raise ConfigError(
            f"student: {path.name} is there, and {error}; move it away", field="student"
        ) from None
    if (sheet.student, sheet.notebook) != (student, notebook):
        raise ConfigError(
            f"student: {path.name} belongs to {sheet.student!r}, and you are"
            f" {student!r}: take another name",
            field="student",
        )
    return sheet.guesses


def slug(field: str, name: str) -> str:
    """A name as part of a file's name: letters and digits, small, with hyphens.

    >>> slug("student", "Ada  King, 3b")
    'ada-king-3b'
    """
    text = name if isinstance(name, str) else ""
    spaced = "".join(each if each.isalnum() else " " for each in text.casefold())
    words = "-".join(spaced.split())
    if not words or len(text) > NAMES:
        raise ConfigError(
            f"{field} is {shorten(repr(name), 60)}: give a text with a letter or a"
            f" digit, of {NAMES} characters at most",
            field=field,
        )
    return words


def read_sheet(path: Path) -> Sheet:
    """The sheet in a file. GuessFileError says why it is none."""
    try:
        with path.open("rb") as file:
            text = file.read(LONGEST + 1)
        if len(text) > LONGEST:
            raise ValueError(f"it has more than {LONGEST:,} bytes")
        return _sheet(text.decode("utf-8"))
    except OSError as error:
        raise GuessFileError(error.strerror or "it cannot be read") from None
    except ValueError as error:  # no JSON, no UTF-8, or one of those above
        raise GuessFileError(shorten(str(error), 120)) from None


def _sheet(text: str) -> Sheet:
    """The sheet that a text holds. ValueError says why it is none."""
    held = parse_object(text)
    if held.get("kind") != KIND:
        raise ValueError(f'it does not say "kind": "{KIND}"')
    for field in ("student", "notebook"):
        slug(field, held.get(field))
    guesses = held.get("guesses")
    if not isinstance(guesses, dict):
        raise ValueError("it has no object `guesses`")
    if len(guesses) > MOST:
        raise ValueError(f"it has more than {MOST} guesses")
    rows = [_guess(name, each) for name, each in guesses.items()]
    return Sheet(held["student"], held["notebook"], rows)


def _guess(name: str, each: object) -> Guess:
    value = each.get("guess") if isinstance(each, dict) else None
    was = each.get("measured") if isinstance(each, dict) else None
    numbers = [value] if was is None else [value, was]
    named = name.strip() and len(name) <= NAMES
    if not (named and all(is_finite(n) and abs(n) < 1e100 for n in numbers)):
        raise ValueError(f"{shorten(name, 40)!r} is no guess with its number")
    return Guess(name, value, was)
