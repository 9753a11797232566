"""The path through: index, primer, glossary and the pages in docs/ say what is so."""

import doctest
import functools
import json
import re
from pathlib import Path

import nbformat
import pytest

from labkit import notebooks
from labkit.__main__ import COMMANDS
from labkit.classroom import course

ROOT = Path(__file__).resolve().parent.parent
INDEX = notebooks.FOLDER / "INDEX.md"
DOCS = {name: ROOT / "docs" / f"{name}.md"
        for name in ("glossary", "typescript", "teaching", "install")}  # fmt: skip
PAGES = [INDEX, *DOCS.values()]
LINK = re.compile(r"\]\(([^)#\s]+)(#[^)\s]*)?\)")
NUMBERS = dict(zip(
    "four six eight ten fifteen twenty twenty-five thirty thirty-five forty".split(),
    (4, 6, 8, 10, 15, 20, 25, 30, 35, 40), strict=True,
))  # fmt: skip


@functools.cache
def text(path: Path) -> str:
    """What a page says; of a notebook, its cells and what they print."""
    if path.suffix != ".ipynb":
        return path.read_text("utf-8")
    cells = nbformat.read(path, as_version=4).cells
    shown = [json.dumps(cell.get("outputs", []), ensure_ascii=False) for cell in cells]
    return "\n".join([*(cell.source for cell in cells), *shown])


def rows(path: Path, columns: int) -> list[list[str]]:
    """The rows of all tables of a page that have so many columns, without heads."""
    lines = re.findall(r"^\| (.+?) ?\|$", path.read_text("utf-8"), re.M)
    cells = [[cell.strip() for cell in line.split("|")] for line in lines]
    found = [row for row in cells if len(row) == columns and row[0] != ""]
    return [row for row in found if not set("".join(row)) <= set("-") and row[1] != ""]


def number_before(word: str, said: str) -> int:
    """The number in front of a word: "about 25 minutes", "Twenty-five minutes".

    >>> number_before("minutes", "*Twenty-five minutes, 4 points")
    25
    """
    found = re.search(rf"([\w-]+)\s+{word}", said)[1].lower()
    return NUMBERS[found] if found in NUMBERS else int(found)


# The index


def test_the_index_lists_every_page_with_its_minutes():
    listed = {}
    for name, _, minutes, *_ in rows(INDEX, 5):
        if found := re.search(r"\]\((\w+\.ipynb)\)", name):
            listed[found[1]] = int(minutes)
    assert sorted(listed) == sorted(path.name for path in notebooks.find())
    for name, minutes in listed.items():
        first = nbformat.read(notebooks.FOLDER / name, as_version=4).cells[0].source
        assert number_before("minutes of reading", first) == minutes, name


def test_the_index_lists_every_exercise_with_its_minutes_and_points():
    listed = {}
    for number, name, minutes, points, after in rows(INDEX, 5):
        if number.isdigit():
            title, file = re.fullmatch(r"\[(.+)\]\(exercises/(.+)\)", name).groups()
            listed[file] = (int(number), title, int(minutes), int(points), after)
    exercises = course.find(notebooks.FOLDER / "exercises")
    assert list(listed) == [path.name for path in exercises]
    for path in exercises:
        cells = nbformat.read(path, as_version=4).cells
        number, title, minutes, points, after = listed[path.name]
        first = cells[0].source
        assert first.startswith(f"# Exercise {number}. {title}\n"), path.name
        assert number_before("minutes", first) == minutes, path.name
        graded = [cell.metadata.get("nbgrader", {}).get("points") for cell in cells]
        assert sum(filter(None, graded)) == points, path.name
        assert f"](../{after}_" in first, path.name


def test_each_page_names_the_exercises_that_come_after_it():
    after = {row[0]: row[4] for row in rows(INDEX, 5) if row[0].isdigit()}
    for name, *_, exercises in rows(INDEX, 5):
        if found := re.search(r"\]\((\w+?)_", name):
            named = re.findall(r"\[(\d+)\]\(exercises/", exercises)
            assert named == [n for n, page in after.items() if page == found[1]], name


def test_the_shortest_path_takes_ninety_minutes():
    paths = INDEX.read_text("utf-8").partition("## Paths")[2]
    shortest = paths.partition("ninety minutes.**")[2].partition("\n\n")[0]
    assert sum(map(int, re.findall(r"\((\d+)\)", shortest))) == 90
    part = re.compile(r'\((\d\d_\w+\.ipynb)\), to (?:the end of )?"(.+?)"')
    for name, section in part.findall(shortest.replace("\n", " ")):
        assert f"## {section}\n" in text(notebooks.FOLDER / name), section


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.stem)
def test_every_link_leads_somewhere(page):
    for target, section in LINK.findall(page.read_text("utf-8")):
        path = page.parent / target
        assert path.exists(), target
        if section:
            titles = "\n".join(re.findall(r"^#+ (.+)$", text(path), re.M))
            slugs = re.sub(r"[^\w \n-]", "", titles).lower().replace(" ", "-")
            assert section[1:] in slugs.split("\n"), section


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.stem)
def test_every_command_that_a_page_names_exists(page):
    said = page.read_text("utf-8")
    targets = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text("utf-8"), re.M)
    assert set(re.findall(r"python -m labkit ([a-z]+)", said)) <= set(COMMANDS)
    assert set(re.findall(r"(?m)(?:^ +|`)make ([a-z-]+)", said)) <= set(targets)


# The primer

PRIMER = nbformat.read(notebooks.find("primer")[0], as_version=4)
CODE = [cell for cell in PRIMER.cells if cell.cell_type == "code"]


def test_the_primer_is_short():
    assert 12 <= len(CODE) <= 18
    assert max(len(cell.source.splitlines()) for cell in CODE) <= 15


def test_the_primer_needs_nothing_of_the_course_but_the_clock():
    source = "\n".join(cell.source for cell in CODE)
    used = set(re.findall(r"^(?:from|import) (\w+)", source, re.M))
    assert used == {"asyncio", "contextlib", "labkit", "time"}
    assert re.findall(r".*labkit.*", source) == ["from labkit import run_virtual"]


@pytest.mark.parametrize(
    "word",
    ["coroutine", "create_task", "gather", "TaskGroup", "CancelledError", "finally",
     "asyncio.timeout", "shield", "time.sleep", "to_thread", "async with",
     "async for"],
)  # fmt: skip
def test_the_primer_covers(word):
    said = [cell.source for cell in PRIMER.cells]
    assert any(word in cell for cell in said)


def test_the_primer_ends_with_questions_whose_answers_are_folded():
    asked, answers = PRIMER.cells[-2].source.partition("## Three questions")[2].split(
        "<details>"
    )
    assert len(re.findall(r"^\d\. ", asked, re.M)) == 3
    assert len(re.findall(r"^\d\. ", answers, re.M)) == 3
    assert answers.rstrip().endswith("</details>")


# The glossary

TERMS = [row for row in rows(DOCS["glossary"], 4) if row[0].startswith("**")]


def names(row: list[str]) -> list[str]:
    return [name.strip("* `") for name in row[0].split(",")]


def test_the_glossary_is_in_order_and_names_each_term_once():
    terms = [names(row)[0].lower() for row in TERMS]
    assert terms == sorted(set(terms)) and len(terms) > 60


@pytest.mark.parametrize("row", TERMS, ids=lambda row: names(row)[0])
def test_a_term_appears_where_the_glossary_says(row):
    _, meaning, portuguese, where = row
    assert meaning.endswith(".") and meaning.count(". ") <= 1 and portuguese
    places = [target for target, _ in LINK.findall(where)]
    assert places
    for place in places:
        said = " ".join(text(DOCS["glossary"].parent / place).lower().split())
        assert any(name.lower() in said for name in names(row)), place


# What runs


@pytest.mark.parametrize("name, fewest", [("typescript", 40), ("teaching", 10)])
def test_the_lines_of_a_page_run_and_say_what_it_prints(name, fewest):
    source = re.sub(r"^```.*$", "", DOCS[name].read_text("utf-8"), flags=re.M)
    page = doctest.DocTestParser().get_doctest(source, {}, name, str(DOCS[name]), 0)
    assert len(page.examples) >= fewest
    said = []
    outcome = doctest.DocTestRunner(verbose=False).run(page, out=said.append)
    assert outcome.failed == 0, "".join(said)
