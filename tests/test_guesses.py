"""predict, guess, measured: what is kept, what is no guess, and what a class makes."""

import json
import math
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import labkit
from labkit import guess, measured, predict, save_guesses
from labkit.__main__ import main
from labkit.classroom import guesses, guessfiles
from labkit.classroom.guessfiles import GuessFileError, read_sheet
from labkit.errors import ConfigError
from labkit.plots.guesses import board


def test_a_guess_is_kept_and_shown():
    assert repr(predict("test.last", 30)) == "your guess for test.last: 30"
    assert guess("test.last") == 30


def test_the_latest_guess_counts():
    predict("test.again", 1)
    predict("test.again", 2.5)
    assert guess("test.again") == 2.5


def test_nothing_guessed_is_none():
    assert guess("test.never") is None


@pytest.mark.parametrize("value", [0, -3, 7100, 65.6, np.float64(2.0), np.int64(3)])
def test_any_finite_number_will_do(value):
    predict("test.number", value)
    assert guess("test.number") == value
    assert type(guess("test.number")) in (int, float)


@pytest.mark.parametrize(
    "value", ["30", "30 s", None, True, math.nan, math.inf, 10**400, [30], 1j]
)
def test_what_is_no_number_is_refused(value):
    predict("test.kept", 1)
    with pytest.raises(ConfigError, match="one finite number") as caught:
        predict("test.kept", value)
    assert caught.value.field == "value"
    assert guess("test.kept") == 1


@pytest.mark.parametrize("name", ["", "  ", None, 30])
def test_a_guess_has_a_name(name):
    with pytest.raises(ConfigError, match="give the guess a name") as caught:
        predict(name, 30)
    assert caught.value.field == "name"


def test_what_was_measured_stands_beside_the_guess():
    predict("test.wall_s", 10)
    assert repr(measured("test.wall_s", 205.5362)) == "you said 10 s; it was 205.5 s"
    assert repr(measured("test.unasked_ms", 882)) == "it was 882 ms"
    assert guess("test.unasked_ms") is None


def test_a_new_guess_keeps_what_was_measured():
    measured("test.kept_usd", 0.702)
    predict("test.kept_usd", 0.2)
    assert guesses.all_guesses()[-1] == guesses.Guess("test.kept_usd", 0.2, 0.702)


@pytest.mark.parametrize("value", ["3", None, math.nan, True])
def test_a_result_is_a_number(value):
    with pytest.raises(ConfigError, match="a result is one finite number"):
        measured("test.result", value)


# On disk


@pytest.fixture
def nothing_guessed(monkeypatch):
    monkeypatch.setattr(guesses, "_guesses", {})


@pytest.fixture
def here(tmp_path, monkeypatch, nothing_guessed):
    monkeypatch.chdir(tmp_path)
    return tmp_path / "guesses"


def answer(herd=10, was=205.5):
    predict("herd.naive_s", herd)
    measured("herd.naive_s", was)


def test_nothing_is_written_unless_somebody_asks(here):
    answer()
    assert not here.exists()


def test_guesses_are_saved_and_read_again(here):
    answer()
    predict("gate.wall_ms", 2000)
    said = save_guesses(" Ada  King, 3b ", "02")
    assert said == "2 guesses in guesses/ada-king-3b-02.json"
    sheet = read_sheet(here / "ada-king-3b-02.json")
    assert (sheet.student, sheet.notebook) == ("Ada  King, 3b", "02")
    assert sheet.guesses == [
        guesses.Guess("herd.naive_s", 10, 205.5),
        guesses.Guess("gate.wall_ms", 2000),
    ]
    assert [path.name for path in here.iterdir()] == ["ada-king-3b-02.json"]


def test_a_second_save_keeps_what_only_the_first_had(here, monkeypatch):
    answer()
    save_guesses("Ada", "02")
    monkeypatch.setattr(guesses, "_guesses", {})  # another kernel
    predict("gate.wall_ms", 2000)
    save_guesses("Ada", "02")
    names = {each.name for each in read_sheet(here / "ada-02.json").guesses}
    assert names == {"herd.naive_s", "gate.wall_ms"}


def test_pages_and_students_have_files_of_their_own(here):
    answer()
    for student, notebook in (("Ada", "02"), ("Ada", "03"), ("Zoë", "02")):
        save_guesses(student, notebook)
    assert {p.name for p in here.iterdir()} == {
        "ada-02.json", "ada-03.json", "zoë-02.json",
    }  # fmt: skip


def test_a_file_of_somebody_else_is_not_overwritten(here):
    answer()
    save_guesses("Ada King", "02")
    before = (here / "ada-king-02.json").read_bytes()
    with pytest.raises(ConfigError, match="belongs to 'Ada King'") as caught:
        save_guesses("ada-king", "02")
    assert caught.value.field == "student"
    assert (here / "ada-king-02.json").read_bytes() == before


def test_a_file_that_is_none_of_ours_is_not_overwritten(here):
    answer()
    here.mkdir()
    (here / "ada-02.json").write_text("my notes", "utf-8")
    with pytest.raises(ConfigError, match="move it away"):
        save_guesses("Ada", "02")
    assert (here / "ada-02.json").read_text("utf-8") == "my notes"


@pytest.mark.parametrize(
    "made", [{f"q{n}": 1 for n in range(101)}, {"q": 1e100}, {"q" * 81: 1}]
)
def test_what_could_not_be_read_again_is_not_written(here, made):
    for name, value in made.items():
        predict(name, value)
    with pytest.raises(ConfigError, match="guess") as caught:
        save_guesses("Ada", "02")
    assert caught.value.field == "guesses" and not here.exists()


@pytest.mark.parametrize("in_the_way", ["guesses", "guesses/ada-02.part/x"])
def test_a_folder_that_cannot_be_written_is_named(here, in_the_way):
    answer()
    path = here.parent / in_the_way
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch()
    with pytest.raises(ConfigError, match="cannot write ada-02.json") as caught:
        save_guesses("Ada", "02")
    assert caught.value.field == "folder"


@pytest.mark.parametrize("name", ["", " ", "../..", None, 7, "a" * 81, "/"])
def test_a_name_that_is_none(here, name):
    answer()
    with pytest.raises(ConfigError, match="a letter or a digit"):
        save_guesses(name, "02")
    assert not here.exists()


def test_a_name_never_leads_out_of_the_folder(here):
    answer()
    save_guesses("../../etc/passwd", "02")
    assert [path.name for path in here.iterdir()] == ["etc-passwd-02.json"]


def test_there_must_be_a_guess(here):
    with pytest.raises(ConfigError, match="run the page first"):
        save_guesses("Ada", "02")


def test_git_does_not_see_them():
    root = Path(labkit.__file__).resolve().parent.parent
    assert f"{guessfiles.FOLDER}/" in (root / ".gitignore").read_text().split()


# Merged


def merge(folder, capsys, *more):
    status = main(["guesses", str(folder), *map(str, more)])
    return status, capsys.readouterr().out


@pytest.fixture
def thirty(here):
    for number in range(30):
        answer(herd=number + 1)
        predict("gate.wall_ms", 100 * number)
        save_guesses(f"student {number}", "02")
    return here


def test_thirty_students_become_one_picture(thirty, capsys):
    status, said = merge(thirty, capsys, "--out", "class.png")
    assert status == 0
    assert said == "60 guesses of 30 on 2 questions: class.png\n"
    assert thirty.with_name("class.png").read_bytes().startswith(b"\x89PNG")


BAD = {
    "torn.json": '{"kind": "labkit gue',
    "list.json": "[1, 2]",
    "other.json": '{"a": 1}',
    "deep.json": "[" * 100_000,
    "latin.json": "é".encode("latin-1"),
    "none.json": "",
}


def test_what_cannot_be_read_is_named_and_nothing_is_lost(thirty, capsys):
    for name, text in BAD.items():
        kind = text if isinstance(text, bytes) else text.encode()
        (thirty / name).write_bytes(kind)
    before = {path: path.read_bytes() for path in thirty.iterdir()}
    status, said = merge(thirty, capsys, "--out", "class.svg")
    assert status == 0 and "60 guesses of 30" in said
    skipped = {line.split()[1] for line in said.splitlines() if "skipped" in line}
    assert skipped == {f"{name}:" for name in BAD}
    assert {path: path.read_bytes() for path in thirty.iterdir()} == before


@pytest.mark.parametrize(
    "held",
    [
        {"guess": "12"}, {"guess": None}, 12, {"guess": 1e200}, {"guess": True},
        {"guess": 12, "measured": "x"}, {},
    ],
)  # fmt: skip
def test_a_guess_in_a_file_is_a_number(here, held):
    sheet = {"kind": guessfiles.KIND, "student": "a", "notebook": "02"}
    path = here.with_name("a.json")
    path.write_text(json.dumps(sheet | {"guesses": {"herd": held}}), "utf-8")
    with pytest.raises(GuessFileError, match="'herd' is no guess with its number"):
        read_sheet(path)


def test_a_file_that_is_too_much(here):
    path = here.with_name("a.json")
    many = {str(n): {"guess": 1} for n in range(101)}
    sheet = {"kind": guessfiles.KIND, "student": "a", "notebook": "02"}
    path.write_text(json.dumps(sheet | {"guesses": many}), "utf-8")
    with pytest.raises(GuessFileError, match="more than 100 guesses"):
        read_sheet(path)
    path.write_bytes(b" " * 1_000_001)
    with pytest.raises(GuessFileError, match="more than 1,000,000 bytes"):
        read_sheet(path)


def test_the_same_student_twice_is_said(thirty, capsys):
    copy = thirty / "again" / "student-3-02 (1).json"
    copy.parent.mkdir()
    copy.write_bytes((thirty / "student-3-02.json").read_bytes())
    status, said = merge(thirty, capsys, "--out", "class.png")
    assert "both count" in said and "62 guesses of 30" in said


def test_no_file_name_reaches_the_terminal_raw(thirty, capsys):
    mine = (thirty / "student-3-02.json").read_bytes()
    (thirty / "evil\x1b[2J.json").write_bytes(mine)
    (thirty / "more\x1b[2J.json").write_bytes(b"{")
    status, said = merge(thirty, capsys, "--out", "class.png")
    assert "both count" in said and "skipped more" in said and "\x1b" not in said


def test_a_picture_that_cannot_be_written_is_one_line(thirty, capsys):
    thirty.with_name("class.png").mkdir()
    status, said = merge(thirty, capsys, "--out", "class.png")
    assert status == 1 and said.startswith("--out class.png: ")


def test_one_page_only(thirty, capsys):
    predict("stop.generated", 3)
    save_guesses("student 1", "03")
    out = ("--out", "class.png", "--only", "03")
    status, said = merge(thirty, capsys, *out)
    assert "guesses of 1 on 3 questions" in said  # that kernel knows the others, too


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["nowhere"], "nowhere: there is no such folder"),
        (["guesses", "--out", "class.pdf"], "must end in .png or .svg"),
        (["guesses", "--only", "07"], "no guesses to draw"),
    ],
)
def test_nothing_to_draw(thirty, capsys, words, said):
    status, told = merge(words[0], capsys, *words[1:])
    assert status == 1 and said in told


def test_each_guess_is_a_dot_and_what_was_measured_a_line():
    rows = [("herd.naive_s", g, 205.5) for g in (1, 10, 10, 400)]
    rows += [("odd.$name$", -1, None)]
    table = pd.DataFrame(rows, columns=["question", "guess", "measured"])
    fig = board(table, note="virtual clock")
    herd, odd = fig.axes
    dots = [line.get_xydata()[0] for line in herd.lines if line.get_marker() == "o"]
    assert sorted(map(tuple, dots)) == [(1, 1), (10, 1), (10, 2), (400, 1)]
    (upright,) = [line for line in herd.lines if line.get_marker() != "o"]
    assert set(upright.get_xdata()) == {205.5}
    assert "measured 205.5 s; 4 guesses, median 10 s" in herd.get_title(loc="left")
    assert "not measured; a guess, -1" in odd.get_title(loc="left")
    assert herd.get_xscale() == "log" and odd.get_xscale() == "linear"
    assert fig.png() == board(table, note="virtual clock").png()
