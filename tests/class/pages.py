"""An exercise as the tests see it: its cells by grade_id, run, and what came of it."""

import copy
from typing import NamedTuple

from labkit import notebooks, outputs
from labkit.classroom import course

SOLUTIONS = {path.stem: path for path in course.find(course.SOLUTIONS)}


class Run(NamedTuple):
    """What a run of a notebook showed."""

    failed: dict[str, str]  # grade_id of a test cell that fails -> its error
    blemishes: list[str]
    values: list[str]  # grade_ids of test cells that show a value
    reached: bool  # the last code cell ran


def read(slug: str):
    return notebooks.read(SOLUTIONS[slug])


def graded(page) -> dict[str, object]:
    """The test cells, by grade_id."""
    return {name: cell for name, cell in by_id(page).items() if meta(cell)["grade"]}


def by_id(page) -> dict[str, object]:
    """The cells that nbgrader knows, by grade_id."""
    return {meta(cell)["grade_id"]: cell for cell in page.cells if meta(cell)}


def meta(cell) -> dict:
    return cell.metadata.get("nbgrader", {})


def points(page) -> dict[str, float]:
    return {name: meta(cell)["points"] for name, cell in graded(page).items()}


def answered(page, cells: dict[str, str]):
    """The same page with other answers in some of its solution cells."""
    page = copy.deepcopy(page)
    there = by_id(page)
    for grade_id, text in cells.items():
        assert meta(there[grade_id])["solution"], f"{grade_id} is no solution cell"
        there[grade_id].source = text
    return page


def run(page) -> Run:
    """Run a page in a kernel of its own. Raises NotebookError where a cell fails that
    is not tagged for it: then Run All would stop there."""
    page = notebooks.execute(copy.deepcopy(page))
    errors, values = {}, []
    for name, cell in graded(page).items():
        for output in cell.outputs:
            if output.output_type == "error":
                errors[name] = f"{output.ename}: {output.evalue}"
            elif output.output_type == "execute_result":
                values.append(name)
    last = [cell for cell in page.cells if cell.cell_type == "code"][-1]
    reached = last.execution_count is not None
    return Run(errors, outputs.blemishes(page), values, reached)
