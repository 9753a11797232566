"""The notebooks: their form, and that each still shows what is committed."""

import copy
import re
import statistics
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

from labkit import notebooks, outputs

ROOT = Path(__file__).resolve().parent.parent
PATHS = notebooks.find()
NAMES = [path.name for path in PATHS]
LINK = re.compile(r"\]\(([^)#]+)(?:#[^)]*)?\)")
TAGS = {outputs.REAL_TIME}
CALLS = ("predict", "measured")

# The pages of the course. A primer is none: it measures nothing, so it asks nothing.
NUMBERED = [path for path in PATHS if path.name[0].isdigit()]
LESSON = pytest.mark.parametrize(
    "path", NUMBERED, ids=[path.name for path in NUMBERED], indirect=True
)


@pytest.fixture(params=PATHS, ids=NAMES)
def path(request):
    return request.param


@pytest.fixture
def page(path):
    return nbformat.read(path, as_version=4)


def code(page):
    return [cell for _, cell in outputs.code_cells(page)]


def prose(page):
    return [cell for cell in page.cells if cell.cell_type == "markdown"]


def test_there_are_notebooks():
    assert NAMES[:2] == ["00_start_here.ipynb", "01_streaming.ipynb"]


@pytest.mark.timeout(900)  # a notebook takes 20 s alone, more beside other tests
def test_it_shows_what_is_committed(path):
    number = path.name.partition("_")[0]
    command = [sys.executable, "-m", "labkit", "notebooks", "--check", "--only", number]
    done = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, timeout=600
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout == f"{path.name}: ok\n"
    assert done.stderr == ""


def test_it_is_legal_and_normalised(path, page):
    nbformat.validate(page)
    tidy = notebooks.normalise(copy.deepcopy(page))
    assert nbformat.writes(tidy) + "\n" == path.read_text("utf-8")


def test_it_is_fit_for_any_machine(page):
    assert outputs.blemishes(page) == []


def test_it_opens_with_its_title_and_how_long_it_takes(page):
    first = page.cells[0]
    assert first.cell_type == "markdown" and first.source.startswith("# ")
    titles = [line for c in prose(page) for line in c.source.split("\n")]
    assert sum(line.startswith("# ") for line in titles) == 1
    assert "minutes" in first.source and "Run All" in first.source


@LESSON
def test_it_checks_first_and_closes_last(page):
    assert "labkit.check()" in code(page)[0].source
    assert "labkit.reset()" in code(page)[-1].source
    assert "What you can do now" in page.cells[-1].source


def test_it_was_run_once_from_top_to_bottom(page):
    counts = [cell.execution_count for cell in code(page)]
    assert counts == list(range(1, len(counts) + 1))


def test_its_cells_are_short(page):
    lines = [cell.source.splitlines() for cell in code(page)]
    assert [line for cell in lines for line in cell if len(line) > 76] == []
    # One long cell is allowed: the tiny server of notebook 01, one for every page.
    assert sum(len(cell) > 15 for cell in lines) <= 1


@LESSON
def test_half_of_its_cells_are_very_short(page):
    assert statistics.median(len(cell.source.splitlines()) for cell in code(page)) <= 5


def test_there_is_about_as_much_prose_as_code(page):
    assert 0.6 <= len(prose(page)) / len(code(page)) <= 2


def test_it_changes_nothing_about_the_interpreter(page):
    for cell in code(page):
        assert not re.search(r"sys\.path|^\s*[%!]", cell.source, re.M), cell.source


def test_only_known_tags(page):
    for cell in page.cells:
        assert set(cell.metadata.get("tags", ())) <= TAGS


def test_few_cells_depend_on_real_time(page):
    tagged = [c for c in code(page) if outputs.REAL_TIME in c.metadata.get("tags", ())]
    assert len(tagged) <= 5


def test_its_links_lead_somewhere(path, page):
    for cell in prose(page):
        for target in LINK.findall(cell.source):
            if not target.startswith(("http:", "https:")):
                assert (path.parent / target).exists(), target


@LESSON
def test_its_pictures_are_there(page):
    drawn = [c for c in code(page) if re.search(r"^plots\.|^lanes\(", c.source, re.M)]
    for cell in drawn:
        assert outputs.pictures(cell), cell.source
    assert any(outputs.pictures(cell) for cell in code(page))


def test_its_pictures_are_retina_and_hold_no_version(page):
    for cell in code(page):
        for output in cell.outputs:
            if "image/png" in output.get("data", {}):
                assert output.metadata["image/png"]["width"] <= 800
                assert "matplotlib version" not in output.data["image/png"]


PREDICT = re.compile(r'predict\(\s*"([^"]+)"')
MEASURED = re.compile(r'measured\(\s*"([^"]+)"')
USED = re.compile(r'guess\(\s*["\']([^"\']+)')


def source(page):
    return "\n".join(cell.source for cell in code(page))


@LESSON
def test_it_asks_for_a_guess_and_says_what_it_was(page):
    guessed = PREDICT.findall(source(page))
    assert guessed and sorted(guessed) == sorted(MEASURED.findall(source(page)))
    assert set(USED.findall(source(page))) <= set(guessed)


@LESSON
def test_the_answer_is_said_after_the_guess(page):
    for name in PREDICT.findall(source(page)):
        whole = source(page)
        asked, said = (whole.index(f'{call}("{name}') for call in CALLS)
        assert asked < said, name


def test_no_two_pages_ask_the_same():
    pages = [nbformat.read(path, as_version=4) for path in NUMBERED]
    names = [name for page in pages for name in PREDICT.findall(source(page))]
    assert len(names) == len(set(names)) > 40


@LESSON
def test_guesses_are_written_down_only_if_somebody_asks(path, page):
    (cell,) = [c for c in code(page) if "save_guesses" in c.source]
    assert cell.source == f'# labkit.save_guesses("your name", "{path.name[:2]}")'


@LESSON
def test_each_thing_to_try_has_its_answer(page):
    (tried,) = [c.source for c in prose(page) if "## Try it yourself" in c.source]
    asked, _, answers = tried.partition("<details><summary>")
    number = re.compile(r"^(\d)\. ", re.M)
    asked = asked.partition("## Try it yourself")[2]
    assert number.findall(asked) == number.findall(answers) != []
    assert answers.strip().endswith("</details>")


@LESSON
def test_its_last_line_leads_on(path, page):
    line = page.cells[-1].source.splitlines()[-1]
    here = NUMBERED.index(path)
    near = [NUMBERED[n].name for n in (here - 1, here + 1) if 0 <= n < len(NUMBERED)]
    targets = LINK.findall(line)
    assert targets[-1] == "INDEX.md" and "xercise" in line
    assert targets[-1 - len(near) : -1] == near
    assert all(each.startswith("exercises/") for each in targets[: -1 - len(near)])


def test_each_exercise_belongs_to_one_page():
    lines = [
        nbformat.read(path, as_version=4).cells[-1].source.splitlines()[-1]
        for path in NUMBERED
    ]
    named = re.findall(r"\(exercises/(\d\d)_", "\n".join(lines))
    assert sorted(named) == [f"{n:02}" for n in range(1, 17)]


def test_the_links_of_the_index_lead_somewhere():
    index = notebooks.FOLDER / "INDEX.md"
    if index.exists():
        for target in LINK.findall(index.read_text("utf-8")):
            if not target.startswith(("http:", "https:")):
                assert (index.parent / target).exists(), target


# What the machinery says when something is amiss


def shown(source="1", text="1\n", tags=(), **more):
    cell = new_code_cell(source, id="one", execution_count=1)
    output = new_output("stream", **{"name": "stdout", "text": text, **more})
    cell.outputs = [output]
    if tags:
        cell.metadata["tags"] = list(tags)
    return new_notebook(cells=[new_markdown_cell("# T", id="t"), cell])


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("<mock at 0x7f3400069c50>", "a memory address"),
        ("DeprecationWarning: old", "a warning"),
        ("see /" + "home/ada/x.py", "an absolute path"),
        (f"see {ROOT}/x.py", "an absolute path"),
        (r"see C:\Users\ada", "an absolute path"),
    ],
)
def test_what_must_not_be_in_an_output(text, kind):
    (said,) = outputs.blemishes(shown(text=text))
    assert said.startswith("cell 2 (1) shows " + kind)


@pytest.mark.parametrize(
    "text",
    ["/v1/chat", "http://127.0.0.1:8787/v1", "Error: permission denied: /etc/shadow"],
)
def test_what_may_be_in_an_output(text):
    assert outputs.blemishes(shown(text=text)) == []


def test_stderr_is_no_place_for_a_page():
    (said,) = outputs.blemishes(shown(name="stderr", text="hm\n"))
    assert said == "cell 2 (1) shows a text on stderr: hm"


def test_a_difference_is_readable():
    (said,) = outputs.differences(shown(text="a\nb\n"), shown(text="a\nc\n"))
    assert said.startswith("cell 2 (1) shows something else:\n--- committed\n+++ now")
    assert said.endswith(" a\n-b\n+c")


def test_real_time_may_differ():
    tags = [outputs.REAL_TIME]
    assert outputs.differences(shown(text="1", tags=tags), shown(text="2")) == []


def test_the_version_of_python_may_differ():
    one, two = shown(text="ready: Python 3.11"), shown(text="ready: Python 3.13")
    assert outputs.differences(one, two) == []


def test_a_notebook_that_was_never_run_is_told_apart():
    never = shown()
    never.cells[1].execution_count, never.cells[1].outputs = None, []
    assert len(outputs.differences(never, shown())) == 2


def test_another_picture_is_a_difference():
    def drawn(png):
        page = shown()
        data = {"image/png": png, "text/plain": "figure: t"}
        page.cells[1].outputs = [new_output("display_data", data=data)]
        return page

    assert outputs.differences(drawn("aaaa"), drawn("aa\naa")) == []
    (said,) = outputs.differences(drawn("aaaa"), drawn("bbbb"))
    assert said == "cell 2 (1) shows another picture"


def test_controls_are_no_part_of_a_committed_page():
    """Their ids are new each time; the picture under them stays."""
    page = shown()
    dead = {"text/plain": "VBox()", notebooks.CONTROLS: {"model_id": "f00"}}
    page.cells[1].outputs.insert(0, new_output("display_data", data=dead))
    (left,) = notebooks.normalise(page).cells[1].outputs
    assert left.text == "1\n"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setattr(notebooks, "FOLDER", tmp_path)
    return tmp_path


def written(folder, source):
    page = new_notebook(cells=[new_code_cell(source, id="one")])
    path = folder / "00_page.ipynb"
    path.write_text(nbformat.writes(page), "utf-8")
    return path


def test_a_refresh_is_repeatable_and_then_checks(folder):
    path = written(folder, "for n in range(3):\n    print(n, flush=True)\nobject")
    assert notebooks.refresh(path) == []
    first = path.read_bytes()
    assert notebooks.refresh(path) == []
    assert path.read_bytes() == first
    assert notebooks.check(path) == []
    stream, result = nbformat.read(path, 4).cells[0].outputs
    assert stream.text == "0\n1\n2\n" and result.data["text/plain"] == "object"


def test_a_page_that_fails_is_not_written(folder):
    path = written(folder, "print('before')\n1 / 0")
    before = path.read_bytes()
    (said,) = notebooks.refresh(path)
    assert said.startswith("a cell failed:") and "ZeroDivisionError" in said
    assert path.read_bytes() == before


def test_a_page_with_a_blemish_is_not_written(folder):
    path = written(folder, "import warnings\nwarnings.warn('old')")
    before = path.read_bytes()
    (said, *_) = notebooks.refresh(path)
    assert "shows a warning: UserWarning: old" in said
    assert path.read_bytes() == before


def test_the_kernel_does_not_see_a_developers_settings(monkeypatch):
    monkeypatch.setenv("LLM_API_KEY", "secret")
    monkeypatch.setenv("MPLBACKEND", "Agg")
    env = notebooks.environment("profile")
    assert "LLM_API_KEY" not in env and "MPLBACKEND" not in env
    assert env["TQDM_DISABLE"] == "1" and env["IPYTHONDIR"] == "profile"


def test_a_file_that_is_no_notebook(folder):
    path = folder / "00_page.ipynb"
    path.write_text("no json", "utf-8")
    (said,) = notebooks.check(path)
    assert said.startswith("00_page.ipynb is no notebook")


def test_an_unknown_number_is_answered_with_the_list(capsys):
    assert notebooks.main(arguments("--only", "99")) == 1
    assert "00_start_here.ipynb" in capsys.readouterr().out


def arguments(*given):
    import argparse

    parser = argparse.ArgumentParser()
    notebooks.add_arguments(parser)
    return parser.parse_args(given)
