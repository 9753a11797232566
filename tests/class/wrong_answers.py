"""Typical wrong answers: what each says, which points it loses, which hint it gets.

tests/class/wrong/NN_slug.py holds `WRONG`, a list of `Wrong`, for the notebook of the
same name. Such a module says `from wrong_answers import Wrong`: `load` sees to it that
the import works, however the tests were started.
"""

import importlib.util
import sys
from pathlib import Path
from typing import NamedTuple

HERE = Path(__file__).resolve().parent
FOLDER = HERE / "wrong"


class Wrong(NamedTuple):
    """A typical wrong answer to one exercise.

    name: what is wrong, in a few words ("counts [DONE]").
    cells: grade_id of a solution cell -> the cell's whole text, as a student has it.
        Cells that are not named hold the right answer.
    loses: the grade_ids of exactly the test cells that fail.
    hint: words that stand in the error of at least one of those cells.
    """

    name: str
    cells: dict[str, str]
    loses: set[str]
    hint: str


def load(slug: str) -> list[Wrong]:
    """The wrong answers to the exercise `slug` ("01_raw_sse"); [] if it has none."""
    path = FOLDER / f"{slug}.py"
    if not path.exists():
        return []
    if str(HERE) not in sys.path:
        sys.path.insert(0, str(HERE))
    spec = importlib.util.spec_from_file_location(f"wrong_{slug}", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.WRONG
