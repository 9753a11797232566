"""The exercises: their form, and that the student copies give nothing away.

All of it is read here, without nbgrader. `make test-class` runs them and grades them.
"""

import ast
import copy
import re

import nbformat
import pytest

from labkit import exercise, notebooks, outputs
from labkit.__main__ import main
from labkit.classroom import command as classroom
from labkit.classroom import course

SOLUTIONS = course.find(course.SOLUTIONS)
NAMES = [path.name for path in SOLUTIONS]
SLUGS = """01_raw_sse 02_first_and_last_word 03_triage 04_retry_after 05_finished
    06_full_jitter 07_lost_letter 08_three_bills 09_error_text 10_idle_limit
    11_repair_send 12_budget 13_pending 14_no_progress 15_ledger
    16_two_limiters""".split()
LINK = re.compile(r"\]\(([^)#]+)(?:#[^)]*)?\)")
MAY_RAISE = "raises-exception"  # Run All goes on behind such a cell
STUB = "# YOUR CODE HERE\nraise NotImplementedError()"
SOLUTION = re.compile(
    r"^( *)### BEGIN SOLUTION\n.*?\n *### END SOLUTION", re.MULTILINE | re.DOTALL
)
HIDDEN = re.compile(
    r"\n### BEGIN HIDDEN TESTS\n(.*?)\n### END HIDDEN TESTS", re.MULTILINE | re.DOTALL
)


def indented(found: re.Match) -> str:
    return "\n".join(found[1] + line for line in STUB.split("\n"))


def handed_out(source: str) -> str:
    """What a student sees of a cell."""
    return HIDDEN.sub("", SOLUTION.sub(indented, source))


@pytest.fixture(params=SOLUTIONS, ids=NAMES)
def path(request):
    return request.param


@pytest.fixture
def page(path):
    return notebooks.read(path)


@pytest.fixture
def copied(path):
    return notebooks.read(classroom.EXERCISES / path.name)


def code(page):
    return [cell for _, cell in outputs.code_cells(page)]


def prose(page):
    return [cell.source for cell in page.cells if cell.cell_type == "markdown"]


def meta(cell) -> dict:
    return cell.metadata.get("nbgrader", {})


def solution_cells(page):
    return [cell for cell in code(page) if meta(cell).get("solution")]


def test_cells(page):
    return [cell for cell in code(page) if meta(cell).get("grade")]


test_cells.__test__ = False  # a reader, not a test


def test_there_are_sixteen_each_with_its_copy():
    assert [path.stem for path in SOLUTIONS] == SLUGS
    assert [path.name for path in course.find(classroom.EXERCISES)] == NAMES


def test_it_is_legal_normalised_and_has_no_outputs(path):
    for each in (path, classroom.EXERCISES / path.name):
        page = notebooks.read(each)
        nbformat.validate(page)
        bare = classroom.without_outputs(copy.deepcopy(page))
        assert classroom.as_bytes(bare) == each.read_bytes(), each


def test_a_copy_is_its_solution_without_what_is_hidden(page, copied):
    assert [cell.id for cell in copied.cells] == [cell.id for cell in page.cells]
    for cell, theirs in zip(page.cells, copied.cells, strict=True):
        assert theirs.source == handed_out(cell.source), cell.id
        named = {key: value for key, value in meta(theirs).items() if key != "checksum"}
        assert named == meta(cell), cell.id
        assert theirs.metadata.get("tags") == cell.metadata.get("tags"), cell.id


def test_a_copy_gives_nothing_away(page, copied):
    shown = {line.strip() for cell in copied.cells for line in cell.source.split("\n")}
    kept = {
        line.strip()
        for cell in page.cells
        for part in [*SOLUTION.finditer(cell.source), *HIDDEN.finditer(cell.source)]
        for line in part[0].split("\n")
    }
    # Some lines stand in both by chance, and few of those that tell anything.
    telling = {line for line in kept if len(line) > 30}
    assert not {line for line in shown if "SOLUTION" in line or "HIDDEN" in line}
    assert len(telling & shown) <= len(telling) / 4, telling & shown


def test_every_cell_that_nbgrader_knows_is_marked_as_it_should_be(page):
    """To be answered, to be graded, or given and only locked."""
    known = [cell for cell in page.cells if meta(cell)]
    ids = [meta(cell)["grade_id"] for cell in known]
    assert len(set(ids)) == len(ids)
    for cell in known:
        said = meta(cell)
        assert said["schema_version"] == 3 and cell.cell_type == "code", cell.id
        assert said["cell_type"] == "code", cell.id
        assert said["locked"] is not said["solution"], cell.id
        assert said["locked"] or not said["grade"], cell.id


def test_grade_ids_are_unique_in_the_course():
    ids = [meta(cell)["grade_id"] for path in SOLUTIONS
           for cell in test_cells(notebooks.read(path))]  # fmt: skip
    assert len(set(ids)) == len(ids)


def test_its_points(page):
    points = [meta(cell)["points"] for cell in test_cells(page)]
    assert sum(points) in (4, 6, 8) and 2 <= len(points) <= 4
    assert all(isinstance(most, int) and most > 0 for most in points)


def test_a_solution_cell_shows_the_name_and_what_it_is_to_do(page):
    assert solution_cells(page)
    for cell in solution_cells(page):
        assert len(SOLUTION.findall(cell.source)) == 1, cell.id
        (function,) = [
            node for node in ast.parse(handed_out(cell.source)).body
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
        ]  # fmt: skip
        assert ast.get_docstring(function), cell.id


def test_every_assertion_has_a_hint(page):
    for cell in test_cells(page):
        hidden = HIDDEN.findall(cell.source)
        assert len(hidden) == 1 and "rng(" in hidden[0], cell.id
        visible = ast.parse(handed_out(cell.source))
        assert any(isinstance(node, ast.Assert) for node in ast.walk(visible)), cell.id
    for cell in code(page):
        for node in ast.walk(ast.parse(cell.source)):
            if isinstance(node, ast.Assert):
                assert node.msg is not None, f"{cell.id}: {ast.unparse(node)}"


def test_run_all_goes_on_behind_a_gap(page):
    for cell in solution_cells(page) + test_cells(page):
        assert MAY_RAISE in cell.metadata.get("tags", ()), cell.id


def test_only_known_tags(page):
    for cell in page.cells:
        assert set(cell.metadata.get("tags", ())) <= {MAY_RAISE}


def test_it_reads_like_the_other_pages(path, page):
    title, *_, last = prose(page)
    number = int(path.name[:2])
    assert title.startswith(f"# Exercise {number}. ")
    assert "minutes" in title and "](../" in title
    assert "hat to remember" in last
    assert page.cells[-1].source == last
    assert sum(c.startswith("# ") for c in prose(page)) == 1


def test_its_lines_fit(page):
    lines = [line for cell in code(page) for line in cell.source.splitlines()]
    assert [line for line in lines if len(line) > 76] == []
    for cell in code(page):
        assert not re.search(r"sys\.path|^\s*[%!]", cell.source, re.M), cell.source


def test_its_links_lead_somewhere(path, page):
    for target in (found for text in prose(page) for found in LINK.findall(text)):
        if not target.startswith(("http:", "https:")):
            there = (path.parent / target).resolve()
            assert there.exists(), target


# Chance


def test_a_variant_is_the_same_for_a_seed_and_another_for_another(monkeypatch):
    monkeypatch.delenv(exercise.SEED, raising=False)
    usual = exercise.rng("budget").random()
    monkeypatch.setenv(exercise.SEED, "")
    assert exercise.rng("budget").random() == usual
    monkeypatch.setenv(exercise.SEED, exercise.DEFAULT_SEED)
    assert exercise.rng("budget").random() == usual
    monkeypatch.setenv(exercise.SEED, "a teacher's own")
    assert exercise.rng("budget").random() != usual


# What a class gets


@pytest.fixture
def copies(tmp_path):
    assert main(["class", "copies", "--out", str(tmp_path / "class")]) == 0
    return tmp_path / "class"


def test_class_copies_have_no_outputs_and_no_solutions(copies):
    there = {path.relative_to(copies).as_posix() for path in copies.rglob("*.ipynb")}
    chapters = {path.name for path in notebooks.find()}
    assert there == chapters | {f"exercises/{name}" for name in NAMES}
    for path in copies.rglob("*.ipynb"):
        for cell in code(notebooks.read(path)):
            assert cell.outputs == [] and cell.execution_count is None
            assert "SOLUTION" not in cell.source


def test_class_copies_ask_what_the_notebooks_ask(copies):
    for path in notebooks.find():
        ours, theirs = notebooks.read(path), notebooks.read(copies / path.name)
        assert [c.source for c in ours.cells] == [c.source for c in theirs.cells]
        assert [c.id for c in ours.cells] == [c.id for c in theirs.cells]


def test_class_copies_are_never_written_over_a_students_work(copies, capsys):
    done = copies / "exercises" / NAMES[0]
    done.write_text("my work", "utf-8")
    assert main(["class", "copies", "--out", str(copies)]) == 1
    assert "class is not empty" in capsys.readouterr().out
    assert done.read_text("utf-8") == "my work"


@pytest.mark.parametrize("words", [("copies", "--out"), ("course",)])
def test_a_file_in_the_place_of_a_folder_is_named(words, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(classroom.course, "require", lambda: None)
    path = tmp_path / "taken"
    path.write_text("mine", "utf-8")
    assert main(["class", *words, str(path)]) == 1
    assert "taken" in capsys.readouterr().out
    assert path.read_text("utf-8") == "mine"


def test_a_course_is_not_begun_twice_nor_without_nbgrader(
    tmp_path, monkeypatch, capsys
):
    folder = tmp_path / "course"
    with monkeypatch.context() as patch:
        patch.setattr("importlib.util.find_spec", lambda name: None)
        assert main(["class", "course", str(folder)]) == 1
    assert "make setup-class" in capsys.readouterr().out and not folder.exists()
    classroom.course.create(folder)
    with pytest.raises(classroom.course.CourseError, match="a course already"):
        classroom.course.create(folder)


def test_stale_copies_are_reported_then_mended(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(classroom, "EXERCISES", tmp_path)
    fresh = {"01_a.ipynb": b"one", "02_b.ipynb": b"two", "03_c.ipynb": b"three"}
    monkeypatch.setattr(classroom, "student_copies", lambda number: fresh)
    there = {"01_a.ipynb": b"one", "02_b.ipynb": b"other", "04_gone.ipynb": b"four"}
    for name, content in there.items():
        (tmp_path / name).write_bytes(content)
    assert main(["class", "student", "--check"]) == 1
    stale = "02_b.ipynb: stale\n03_c.ipynb: stale\n04_gone.ipynb: stale\n"
    assert capsys.readouterr().out.startswith(stale)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == there
    assert main(["class", "student"]) == 0
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == fresh
    assert main(["class", "student", "--check"]) == 0


def test_without_nbgrader_it_says_what_to_do(monkeypatch, capsys):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert main(["class", "student", "--check"]) == 1
    assert "run `make setup-class`" in capsys.readouterr().out


def test_an_exercise_that_does_not_exist(capsys):
    assert main(["class", "student", "--only", "99"]) == 1
    assert "solutions has no exercise 99" in capsys.readouterr().out
