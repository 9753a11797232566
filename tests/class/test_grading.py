"""nbgrader itself: what a teacher does, from the sources to the points."""

import copy
import shutil

import nbformat
import pages
import pytest
from wrong_answers import load

from labkit import notebooks
from labkit.__main__ import main
from labkit.classroom import course

SLUGS = list(pages.SOLUTIONS)
MOST = {slug: pages.points(pages.read(slug)) for slug in SLUGS}
HALVES = [SLUGS[::2], SLUGS[1::2]]  # so that two workers share the kernels
TYPICAL = ["01_raw_sse", "03_triage", "04_retry_after", "06_full_jitter"]

pytestmark = pytest.mark.timeout(900)  # two kernels a page, one after the other


@pytest.fixture(scope="module")
def begun(tmp_path_factory):
    """A course whose student copies were generated."""
    folder = tmp_path_factory.mktemp("begun") / "course"
    course.create(folder)
    course.generate(folder)
    return folder


@pytest.fixture
def lesson(begun, tmp_path):
    """A course of one's own: gradebook and folders as they were at the beginning."""
    return shutil.copytree(begun, tmp_path / "course")


def hand_in(folder, student, slug, page=None):
    """What lies in `submitted`: a page, or the student copy as it was handed out."""
    there = folder / "submitted" / student / course.ASSIGNMENT
    there.mkdir(parents=True, exist_ok=True)
    if page is None:
        shutil.copy(folder / "release" / course.ASSIGNMENT / f"{slug}.ipynb", there)
    else:
        (there / f"{slug}.ipynb").write_text(nbformat.writes(page), "utf-8")


def as_student(folder, slug, cells):
    """The student copy with these answers, and without the hidden tests."""
    handed_out = folder / "release" / course.ASSIGNMENT / f"{slug}.ipynb"
    return pages.answered(notebooks.read(handed_out), cells)


def right_answers(slug):
    solution = pages.by_id(pages.read(slug))
    return {n: c.source for n, c in solution.items() if pages.meta(c)["solution"]}


def check_whole(scores, student, slugs):
    """Exactly the test cells of these pages were graded, with their points."""
    of = [s for s in scores if s.student == student and s.notebook in slugs]
    assert {(s.notebook, s.cell): s.most for s in of} == {
        (slug, cell): most for slug in slugs for cell, most in MOST[slug].items()
    }
    return of


@pytest.mark.parametrize("slugs", HALVES, ids=["odd", "even"])
def test_the_solution_gets_full_marks_and_the_untouched_copy_none(lesson, slugs):
    for slug in slugs:
        page = as_student(lesson, slug, right_answers(slug))
        hand_in(lesson, "solved", slug, page)
        hand_in(lesson, "untouched", slug)
    scores = course.autograde(lesson)
    solved = check_whole(scores, "solved", slugs)
    assert [s for s in solved if s.score != s.most] == []
    untouched = check_whole(scores, "untouched", slugs)
    assert [s for s in untouched if s.score != 0] == []


def test_typical_wrong_answers_lose_exactly_their_points(lesson):
    for slug in TYPICAL:
        wrong = load(slug)[0]
        page = as_student(lesson, slug, right_answers(slug) | wrong.cells)
        hand_in(lesson, slug, slug, page)
    scores = course.autograde(lesson)
    for slug in TYPICAL:
        of = check_whole(scores, slug, [slug])
        wrong = load(slug)[0]
        assert {s.cell for s in of if s.score != s.most} == wrong.loses
        assert sum(s.score for s in of) == sum(
            most for cell, most in MOST[slug].items() if cell not in wrong.loses
        )


def test_a_rewritten_test_earns_nothing(lesson):
    """Test cells are put back as they were, hidden tests included."""
    page = copy.deepcopy(as_student(lesson, SLUGS[0], {}))
    for cell in pages.graded(page).values():
        cell.source = "pass"
    hand_in(lesson, "sly", SLUGS[0], page)
    scores = check_whole(course.autograde(lesson), "sly", [SLUGS[0]])
    assert [s for s in scores if s.score] == []


def test_the_commands_of_a_teacher(tmp_path, capsys):
    folder = tmp_path / "course"
    assert main(["class", "course", str(folder)]) == 0
    released = sorted((folder / "release" / course.ASSIGNMENT).iterdir())
    assert [path.stem for path in released] == SLUGS
    hand_in(folder, "ada", "01_raw_sse", notebooks.read(pages.SOLUTIONS["01_raw_sse"]))
    hand_in(folder, "bob", "01_raw_sse")
    course.autograde(folder)
    capsys.readouterr()
    assert main(["class", "points", str(folder)]) == 0
    (row,) = [s for s in capsys.readouterr().out.split("\n") if "01_raw" in s]
    assert row.split() == ["01_raw_sse", "4/4", "0/4"]


@pytest.mark.parametrize("held", [None, b"", b"junk"])
def test_a_course_without_grades_says_so(held, tmp_path, capsys):
    if held is not None:
        (tmp_path / "gradebook.db").write_bytes(held)
    assert main(["class", "points", str(tmp_path)]) == 1
    assert "has no gradebook.db: grade it first" in capsys.readouterr().out
