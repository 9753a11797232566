"""Every exercise, in kernels of their own: solved, untouched, and answered wrongly."""

import copy

import pages
import pytest
from nbformat.v4 import new_code_cell
from wrong_answers import FOLDER, load

from labkit import notebooks
from labkit.classroom import command as classroom
from labkit.classroom import course
from labkit.exercise import SEED

SLUGS = list(pages.SOLUTIONS)
WRONG = [
    pytest.param(slug, wrong, id=f"{slug}: {wrong.name}")
    for slug in SLUGS
    for wrong in load(slug)
]
SEEDS = [f"a teacher's own, {n}" for n in range(5)]
OFFLINE = """\
import sys

def stay_at_home(event, args):
    if event == "socket.connect" and isinstance(args[1], tuple):
        if not str(args[1][0]).startswith("127."):
            raise RuntimeError(f"an exercise tried to reach {args[1][0]}")

sys.addaudithook(stay_at_home)
"""


@pytest.fixture(autouse=True)
def offline(tmp_path, monkeypatch):
    """Kernels that refuse to connect to anywhere but this machine."""
    start_up = tmp_path / "profile_default" / "startup"
    start_up.mkdir(parents=True)
    (start_up / "00-offline.py").write_text(OFFLINE, "utf-8")
    usual = notebooks.environment
    monkeypatch.setattr(notebooks, "environment", lambda _: usual(str(tmp_path)))


def test_the_kernels_of_these_tests_are_offline():
    page = pages.read(SLUGS[0])
    ask = "import socket\nsocket.create_connection(('192.0.2.1', 80), 1)"
    page.cells.append(new_code_cell(ask, id="ask"))
    with pytest.raises(notebooks.NotebookError, match="tried to reach 192.0.2.1"):
        pages.run(page)


def test_the_student_copies_are_fresh():
    made = classroom.student_copies()
    there = {path.name: path.read_bytes() for path in course.find(classroom.EXERCISES)}
    stale = [name for name in {*made, *there} if made.get(name) != there.get(name)]
    assert not stale, "run `make exercises`"


@pytest.mark.parametrize("slug", SLUGS)
def test_a_solution_runs_clean_whatever_the_seed(slug):
    """The page once, then its test cells again and again with other variants."""
    page = pages.read(slug)
    tests = list(pages.graded(page).values())
    for n, seed in enumerate(SEEDS):
        set_it = f"import os\nos.environ[{SEED!r}] = {seed!r}"
        page.cells.append(new_code_cell(set_it, id=f"seed-{n}"))
        for cell in copy.deepcopy(tests):
            # A name of its own, and without the tag: an error ends the run.
            page.cells.append(new_code_cell(cell.source, id=f"{cell.id}-{n}"))
    ran = pages.run(page)
    assert ran.blemishes == [] and ran.failed == {}
    assert ran.values == [], "nbgrader takes a value that is shown for points"


@pytest.mark.parametrize("slug", SLUGS)
def test_run_all_on_an_untouched_copy_reaches_the_end_and_earns_nothing(slug):
    copied = notebooks.read(classroom.EXERCISES / f"{slug}.ipynb")
    ran = pages.run(copied)
    assert ran.reached
    assert set(ran.failed) == set(pages.graded(copied))


@pytest.mark.parametrize("slug, wrong", WRONG)
def test_a_wrong_answer_loses_its_points_and_gets_its_hint(slug, wrong):
    page = pages.read(slug)
    ran = pages.run(pages.answered(page, wrong.cells))
    assert set(ran.failed) == wrong.loses, ran.failed
    assert any(wrong.hint in said for said in ran.failed.values()), ran.failed


def test_every_exercise_has_a_wrong_answer():
    assert sorted(path.stem for path in FOLDER.glob("*.py")) == SLUGS
    assert [slug for slug in SLUGS if not load(slug)] == []
