"""docs/cases.md lists the cases that there are, and tests that there are."""

import ast
import json
import re
from functools import cache
from pathlib import Path

from tests.handed import FILE

CASES = json.loads(FILE.read_text("utf-8"))["cases"]
TESTS = FILE.parent.parent
PAGE = (TESTS.parent / "docs" / "cases.md").read_text("utf-8")
NAMED = re.compile(r"`(test_\w+\.py)::(test_\w+)`")


def rows(heading: str) -> list[list[str]]:
    """The cells of a section's table, without its head."""
    section = PAGE.split(f"\n## {heading}\n")[1].split("\n## ")[0]
    lines = [line for line in section.splitlines() if line.startswith("|")][2:]
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines]


@cache
def functions(file: str) -> dict[str, str]:
    """The test functions of a file and the source of each, decorators included."""
    source = (TESTS / file).read_text("utf-8")
    return {
        node.name: "\n".join(
            ast.get_source_segment(source, part)
            for part in (*node.decorator_list, node)
        )
        for node in ast.parse(source).body
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")
    }


def test_every_case_is_there_once_in_order_with_its_area():
    listed = [(id, area) for id, area, *_ in rows("The 56 cases")]
    assert listed == [(case["id"], case["area"]) for case in CASES]
    assert len(listed) == 56
    assert [id for id, _ in rows("Who reported it")] == [id for id, _ in listed]


def test_every_row_is_full():
    for row in rows("The 56 cases"):
        assert len(row) == 5 and all(row), row


def test_every_named_test_exists():
    named = NAMED.findall(PAGE)
    assert len(named) > 100
    assert [each for each in named if each[1] not in functions(each[0])] == []
    assert PAGE.count("`test_") == len(named)  # none is named in another way


def test_the_test_of_a_case_is_about_the_case():
    """It has the id in its name, or is run for all cases of the area."""
    for id, area, _, tests, _ in rows("The 56 cases"):
        assert NAMED.findall(tests), id
        for file, name in NAMED.findall(tests):
            is_its_own = name.startswith(f"test_{id.lower()}_")
            for_all = f'load_cases("{area}")' in functions(file)[name]
            assert is_its_own or for_all, (id, name)


def test_every_sibling_is_listed():
    """What was found by asking what else could happen belongs to some kind."""
    helpers = {"test_the_spellings_are_others"}
    listed = {name for _, name in NAMED.findall(PAGE)}
    for file in sorted(path.name for path in Path(TESTS).glob("test_cases_kin_*.py")):
        assert functions(file).keys() - listed - helpers == set(), file


def test_the_sources_are_those_of_the_cases():
    assert {id: source for id, source in rows("Who reported it")} == {
        case["id"]: case["source"] for case in CASES
    }


def test_decisions_are_numbered_and_each_is_held_by_a_test():
    section = PAGE.split("\n## Decisions\n")[1].split("\n## ")[0]
    decisions = re.split(r"\n(?=\d+\. \*\*)", section)[1:]
    numbers = [int(each.split(".")[0]) for each in decisions]
    assert numbers == list(range(1, len(decisions) + 1))
    assert all(NAMED.search(each) for each in decisions)
    meant = {
        int(n)
        for row in rows("The 56 cases")
        for n in re.findall(r"Decision (\d+)", row[4])
    }
    assert meant <= set(numbers)
