"""The exercises as a course of nbgrader: sources in, student copies and points out.

nbgrader is an extra (`make setup-class`): a teacher needs it, a student does not. It
is run as a program, since a program is what its manual describes.
"""

import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

from labkit.errors import LabkitError
from labkit.notebooks import FOLDER

SOLUTIONS = FOLDER / "solutions"
ASSIGNMENT = "exercises"
CONFIG = """\
c = get_config()
c.CourseDirectory.course_id = "labkit"
c.Execute.timeout = 180  # seconds for one cell; the usual 30 are few on a slow machine
"""


class CourseError(LabkitError):
    """nbgrader is missing, or did not do what it was asked to do."""


class Score(NamedTuple):
    """The points of one test cell of one student."""

    student: str
    notebook: str
    cell: str
    score: float
    most: float


def create(folder: Path, number: str | None = None) -> None:
    """Begin a course: its settings, and the solutions as its only assignment.

    number: of one exercise ("04"), where not all are wanted.

    Raises CourseError when there is no such exercise, or a course in the folder.
    """
    sources = find(SOLUTIONS, number)
    if not sources:
        raise CourseError(f"{SOLUTIONS.name} has no exercise {number or ''}".rstrip())
    source = folder / "source" / ASSIGNMENT
    if source.exists():
        raise CourseError(f"{folder.name} holds a course already: name another folder")
    source.mkdir(parents=True)
    (folder / "nbgrader_config.py").write_text(CONFIG, encoding="utf-8")
    for path in sources:
        shutil.copy(path, source)


def find(folder: Path, number: str | None = None) -> list[Path]:
    """The exercises in a folder, in order, or the one with this number."""
    return sorted(folder.glob(f"{number or '[0-9][0-9]'}_*.ipynb"))


def generate(folder: Path, *options: str) -> list[Path]:
    """Make the student copies of a course. Returns them; they are in its `release`.

    options: more words for `nbgrader generate_assignment`, like "--no-db".
    """
    nbgrader(folder, "generate_assignment", ASSIGNMENT, "--force", *options)
    return find(folder / "release" / ASSIGNMENT)


def autograde(folder: Path) -> list[Score]:
    """Grade all that lies in `submitted/STUDENT/exercises`; needs `generate` before.

    Returns the points of every test cell, of these students and of earlier ones.
    """
    nbgrader(folder, "autograde", ASSIGNMENT, "--force")
    return scores(folder)


def scores(folder: Path) -> list[Score]:
    """What the gradebook of a course holds. Raises CourseError if there is none."""
    require()
    from nbgrader.api import Gradebook

    path = folder / "gradebook.db"
    if not is_database(path):  # Gradebook would make one, or fill it
        raise CourseError(f"{folder.name} has no gradebook.db: grade it first")
    with Gradebook(f"sqlite:///{path.resolve()}", "labkit") as book:
        return [
            Score(
                submission.student.id, page.name, grade.name, grade.score,
                grade.max_score,
            )
            for submission in book.assignment_submissions(ASSIGNMENT)
            for page in submission.notebooks
            for grade in page.grades
        ]  # fmt: skip


def is_database(path: Path) -> bool:
    """Is it a file of SQLite? All begin with these words (sqlite.org/fileformat)."""
    if not path.is_file():
        return False
    with path.open("rb") as file:
        return file.read(15) == b"SQLite format 3"


def nbgrader(folder: Path, *words: str) -> None:
    """Run nbgrader in a course. Raises CourseError with what it said."""
    require()
    # It starts `alembic`, which lies beside this Python and perhaps not on PATH.
    beside = os.path.dirname(sys.executable)
    quiet = {"PYDEVD_DISABLE_FILE_VALIDATION": "1", "TQDM_DISABLE": "1"}
    env = {**os.environ, **quiet, "PATH": beside + os.pathsep + os.environ["PATH"]}
    done = subprocess.run(
        [sys.executable, "-m", "nbgrader", *words], cwd=folder, env=env,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
    )  # fmt: skip
    if done.returncode:
        lines = [line for line in done.stdout.splitlines() if "App | INFO]" not in line]
        raise CourseError("\n".join([f"nbgrader {words[0]} failed:", *lines]))


def require() -> None:
    """Raises CourseError where nbgrader is not installed."""
    if importlib.util.find_spec("nbgrader") is None:
        raise CourseError("nbgrader is not installed here: run `make setup-class`")
