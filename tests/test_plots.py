"""Figures: the same bytes each time, nothing of the machine inside, no text cut off."""

import subprocess
import sys
from pathlib import Path

import pytest

from labkit.experiments import readers, streaming
from labkit.plots import streaming as plots
from labkit.plots import style

ROOT = Path(__file__).resolve().parent.parent


def three_lanes():
    frames = {n: streaming.arrivals(fault=f) for n, f in streaming.ENDINGS.items()}
    return plots.lanes(frames, title="Three endings", note="virtual clock")


DRAWN = {
    "lanes": three_lanes,
    "lanes with a guess": lambda: plots.lanes(
        {"one": streaming.arrivals()}, title="t", note="n", guess=2000
    ),
    "ttft": lambda: plots.ttft_bars(streaming.ttft(), note="virtual clock", guess=200),
    "readers": lambda: plots.reader_bars(
        readers.reader(runs=20), note="no clock", guess=30
    ),
}


@pytest.fixture(params=DRAWN)
def picture(request):
    return DRAWN[request.param]()


def test_the_bytes_are_the_same_each_time(picture):
    assert picture.png() == picture.png()


def test_a_picture_names_itself_for_who_cannot_see_it(picture):
    assert repr(picture).startswith("figure: ")
    assert "without" not in repr(picture)


def test_each_axis_with_numbers_has_a_label_with_its_unit(picture):
    for ax in picture.axes:
        assert "(" in ax.get_xlabel()


def test_a_note_stands_under_it(picture):
    assert picture.get_supxlabel()


def test_no_text_is_cut_off_or_too_small(picture):
    picture.draw_without_rendering()
    page = picture.bbox
    every = [t for t in picture.findobj(style.mpl.text.Text) if t.get_text()]
    assert min(text.get_fontsize() for text in every) >= 9
    # Not the tick labels: those beyond the limits are never drawn.
    texts = [text for ax in picture.axes for text in ax.texts] + picture.texts
    texts += [part for ax in picture.axes for part in (ax.title, ax._left_title)]
    for text in (t for t in texts if t.get_text()):
        box = text.get_window_extent()
        assert box.x0 >= -1 and box.x1 <= page.x1 + 1, text.get_text()
        assert box.y0 >= -1 and box.y1 <= page.y1 + 1, text.get_text()


def test_the_three_end_marks_differ_without_colour():
    """Filled, hollow, crossed."""
    marks = [plots.ENDS[e][0] for e in ("length", "IncompleteStream", "BrokenStream")]
    forms = {(m["marker"], m.get("markerfacecolor", m["color"])) for m in marks}
    assert len({(marker, fill == "white") for marker, fill in forms}) == 3


def test_lanes_end_with_the_marks_of_their_endings():
    (ax,) = three_lanes().axes
    words = [text.get_text() for text in ax.texts]
    for ending in ("length", "IncompleteStream", "BrokenStream"):
        assert plots.ENDS[ending][1] in words


def test_a_guess_is_drawn_only_if_there_is_one():
    fig, ax = style.figure()
    style.mark_guess(ax, None)
    assert not ax.lines and not ax.texts
    style.mark_guess(ax, 0.3)
    style.mark_guess(ax, 0.3, axis="y")
    assert [text.get_text() for text in ax.texts] == ["your guess: 0.3"] * 2


def test_saved_files_hold_no_version_and_no_date(tmp_path):
    for suffix in (".png", ".svg"):
        files = [tmp_path / f"{n}{suffix}" for n in "ab"]
        for file in files:
            style.save(three_lanes(), file)
        one, two = (file.read_bytes() for file in files)
        assert one == two
        assert b"matplotlib.org" not in one and b"dc:date" not in one


def test_another_suffix_is_refused(tmp_path):
    with pytest.raises(ValueError, match="must end in .png or .svg"):
        style.save(three_lanes(), tmp_path / "figure.jpg")


def test_drawing_needs_no_pyplot():
    code = (
        "import sys; from labkit.plots import streaming, style;"
        "style.figure()[0].png(); print('matplotlib.pyplot' in sys.modules)"
    )
    said = subprocess.check_output([sys.executable, "-c", code], cwd=ROOT, text=True)
    assert said.strip() == "False"


def test_a_notebook_shows_it_once_at_half_its_pixels(monkeypatch):
    import IPython.display

    shown = []
    monkeypatch.setattr(
        IPython.display, "display", lambda *data, **more: shown.append((data, more))
    )
    fig, ax = style.figure(height_in=2)
    fig._ipython_display_()
    ((data,), more) = shown[0]
    assert len(shown) == 1 and sorted(data) == ["image/png", "text/plain"]
    assert more["metadata"]["image/png"] == {"width": 720, "height": 200}
    width = int.from_bytes(data["image/png"][16:20], "big")
    assert width == 1440
