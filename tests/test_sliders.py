"""The herd under the reader's hands: what is drawn, with controls and without."""

import sys

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_notebook

import labkit
from labkit import notebooks
from labkit.classroom import sliders
from labkit.classroom.sliders import BASE_S, CAP_S, JITTER, Herd, make_controls, redraw
from labkit.errors import ConfigError


class Shown:
    """A display that can be drawn over, as IPython hands it out."""

    def update(self, data, **more):
        self.data = data


class Control:
    def __init__(self, value):
        self.value = value


def dots(picture):
    ax = picture.axes[0]
    return {tuple(xy) for line in ax.lines for xy in line.get_xydata()}


@pytest.fixture(scope="module")
def small():
    return Herd(clients=15)


@pytest.mark.parametrize(
    "field, value",
    [
        ("clients", 20), ("capacity", 5), ("base_s", 0.5), ("cap_s", 1.0),
        ("jitter", "full"), ("jitter", "equal"), ("jitter", "decorrelated"),
    ],
)  # fmt: skip
def test_another_setting_gives_other_dots(small, field, value):
    other = Herd(**{**vars(small), field: value})
    assert dots(other.picture()) != dots(small.picture())


def test_the_same_setting_gives_the_same_picture(small):
    assert small.picture().png() == Herd(clients=15).picture().png()


def test_the_picture_says_its_settings(small):
    picture = Herd(15, capacity=4, base_s=0.1, cap_s=2.0, jitter="full").picture()
    note = " ".join(picture.get_supxlabel().split())
    assert "15 clients ask at once, capacity 4" in note
    assert "backoff 0.1 s doubling to 2 s, jitter: full" in note
    assert any("capacity 4" in text.get_text() for text in picture.axes[1].texts)


def test_jitter_spreads_the_herd(small):
    """The finding that the page is about, at the ends of the controls."""
    bare, full = small.requests(), Herd(15, jitter="full").requests()
    assert full.answered_s.max() < bare.answered_s.max() / 2
    assert len(full) < len(bare)


def test_letting_go_of_a_control_draws_anew(small):
    controls = {name: Control(value) for name, value in vars(small).items()}
    shown = Shown()
    redraw(controls, shown)
    first = shown.data
    controls["jitter"].value = "full"
    redraw(controls, shown)
    assert shown.data["image/png"] != first["image/png"]
    assert shown.data["text/plain"] != first["text/plain"]


@pytest.mark.parametrize(
    "settings, field",
    [
        ({"clients": 4}, "clients"),
        ({"clients": 50.5}, "clients"),
        ({"clients": True}, "clients"),
        ({"capacity": 1}, "capacity"),
        ({"base_s": "0.2"}, "base_s"),
        ({"cap_s": 61}, "cap_s"),
        ({"jitter": "some"}, "jitter"),
        ({"speed": 1}, "speed"),
    ],
)
def test_a_setting_beyond_its_range_is_refused(settings, field):
    with pytest.raises(ConfigError) as caught:
        labkit.playground(**settings)
    assert caught.value.field == field


def test_outside_of_a_notebook_it_only_says_what_it_drew(capsys):
    labkit.playground(clients=5)
    assert "model_id" not in capsys.readouterr().out


@pytest.fixture
def in_a_notebook(monkeypatch):
    monkeypatch.setattr(sliders, "in_a_kernel", lambda: True)


def test_without_ipywidgets_there_is_the_picture_alone(in_a_notebook, monkeypatch):
    monkeypatch.setitem(sys.modules, "ipywidgets", None)
    assert make_controls(Herd()) == {}
    labkit.playground(clients=5)


def test_the_controls_cover_the_settings_and_wait_until_let_go_of(in_a_notebook):
    controls = make_controls(Herd(clients=50, jitter="equal"))
    assert {n: c.value for n, c in controls.items()} == vars(
        Herd(clients=50, jitter="equal")
    )
    moved = [c for c in controls.values() if hasattr(c, "continuous_update")]
    assert len(moved) == 4 and not any(c.continuous_update for c in moved)
    assert controls["jitter"].options == tuple(JITTER)
    said = [c.description for c in controls.values()]
    assert said == ["clients", "capacity", "base (s)", "cap (s)", "jitter"]


def test_no_pair_of_controls_is_refused():
    """Else a control could be moved to where nothing is drawn."""
    for base_s in BASE_S[:2]:
        for cap_s in CAP_S[:2]:
            Herd(base_s=base_s, cap_s=cap_s)


MOVE = """
import gc
from ipywidgets import IntSlider
(clients,) = [each for each in gc.get_objects()
              if isinstance(each, IntSlider) and each.description == "clients"]
clients.value = 20
"""


def test_in_a_kernel_a_moved_control_draws_over_the_picture(tmp_path, monkeypatch):
    monkeypatch.setattr(notebooks, "FOLDER", tmp_path)
    show = "import labkit\nlabkit.playground(clients=10)"

    def run(*sources):
        cells = [new_code_cell(text, id=f"c{n}") for n, text in enumerate(sources)]
        return notebooks.execute(new_notebook(cells=cells))

    still, moved = run(show), run(show, MOVE)
    nbformat.validate(moved)
    (one,), (two,) = still.cells[0].outputs, moved.cells[0].outputs
    assert one.data["text/plain"].endswith("for 10 answers")
    assert two.data["text/plain"].endswith("for 20 answers")
    assert one.data["image/png"] != two.data["image/png"]
