"""Pictures of herds, retries and waiting: what each must show, whatever its looks."""

import io

import pandas as pd
import pytest
from matplotlib.colors import to_hex
from PIL import Image

from labkit import figures
from labkit.experiments import herd_tables, lanes, waiting
from labkit.experiments.contention import contention
from labkit.experiments.herd import herd
from labkit.plots import film, laboratory, notes, retries
from labkit.plots import herd as herds
from labkit.plots import waiting as waits

NONE = "none"


@pytest.fixture(scope="module")
def two_herds() -> tuple[pd.DataFrame, pd.DataFrame]:
    case = herd_tables.MODEL | {"clients": 12, "retry_after": None}
    return herd(strategy="exponential", **case), herd(strategy="full", **case)


JITTER = pd.DataFrame(
    {
        "policy": ["exponential"] * 3 + ["full"] * 3,
        "summary": ["median", None, None] * 2,
        "seed": pd.array([None, 0, 1] * 2, dtype="Int64"),
        "requests": [800, 810, 790, 300, 310, 290],
        "wall_s": [205.5, 205.5, 225.4, 2.0, 1.9, 2.1],
        "peak_50ms": [94, 94, 95, 35, 36, 34],
    }
)


def labelled(fig) -> None:
    """Each axis that shows numbers has a label; each figure says its parameters."""
    for ax in fig.axes:
        texts = [label.get_text() for label in ax.get_xticklabels()]
        if any(texts) and ax.xaxis.get_tick_params()["labelbottom"]:
            assert ax.get_xlabel() or not ax.get_subplotspec().is_last_row()
    assert any(ax.get_title(loc="left") for ax in fig.axes)
    assert fig.get_supxlabel()
    image = Image.open(io.BytesIO(fig.png()))
    assert image.width == 2 * fig.get_size_inches()[0] * 100


def legend_of(ax) -> list[str]:
    return [text.get_text() for text in ax.get_legend().get_texts()]


def test_in_the_herd_a_ring_was_refused_and_a_full_dot_answered(two_herds):
    naive, jitter = two_herds
    fig = herds.herd(naive, jitter, note=notes.hundred(clients=12))
    labelled(fig)
    for ax, rows in ((fig.axes[0], naive), (fig.axes[2], jitter)):
        rings, dots = ax.lines[:2]
        assert rings.get_markerfacecolor() == NONE
        assert dots.get_markerfacecolor() != NONE
        assert len(rings.get_xdata()) == (rows.status == 429).sum()
        assert len(dots.get_xdata()) == 12
        assert "clients" in ax.get_ylabel()
    assert "(s)" in fig.axes[3].get_xlabel()
    assert fig.axes[0].get_xlim() == fig.axes[2].get_xlim()  # one time axis
    assert "50 ms" in fig.axes[1].get_ylabel()
    assert "virtual clock" in fig.get_supxlabel()


def test_the_total_is_said(two_herds):
    naive, _ = two_herds
    (said,) = [text.get_text() for text in herds.herd(*two_herds).axes[0].texts]
    assert said.startswith(f"{len(naive)} requests; all 12")
    assert f"{naive.answered_s.max():.1f} s" in said


def test_dots_climb_in_the_order_of_the_answers(two_herds):
    fig = herds.herd(*two_herds)
    dots = fig.axes[0].lines[1]
    ordered = pd.Series(dots.get_xdata(), dots.get_ydata()).sort_index()
    assert (ordered.diff().dropna() > -0.02).all()  # sent, and answered soon after
    assert sorted(dots.get_ydata()) == list(range(1, 13))


def test_the_beginning_of_the_herd_on_an_even_axis(two_herds):
    fig = herds.herd(*two_herds, until_s=2.0)
    assert fig.axes[0].get_xscale() == "linear"
    assert fig.axes[0].get_xlim()[1] == 2.0
    assert herds.herd(*two_herds).axes[0].get_xscale() == "symlog"


def test_a_line_shows_the_capacity(two_herds):
    fig = herds.herd(*two_herds, capacity=3)
    texts = [text.get_text() for text in fig.axes[1].texts]
    assert texts == ["capacity 3"]
    assert list(fig.axes[1].lines[0].get_ydata()) == [3, 3]


def test_walls_stand_on_the_waves():
    chapter_s = {"exponential": [65.6], "full": [2.2]}
    fig = retries.walls(JITTER, chapter_s, guess_s=100)
    labelled(fig)
    ours, chapters = fig.axes[0].collections[-2:]
    assert [tuple(at) for at in ours.get_offsets()] == [(205.4, 1), (225.4, 1)]
    assert [tuple(at) for at in chapters.get_offsets()] == [(65.4, 1)]
    assert legend_of(fig.axes[1]) == ["labkit, one seed", "the chapter, one run"]


def test_walls_without_what_the_chapter_printed():
    labelled(retries.walls(JITTER))


def test_gate_titles_are_computed():
    widths, requests = [1, 3, 20, 3], [20, 20, 70, 30]
    table = pd.DataFrame({"width": widths, "processes": [1, 1, 1, 4]})
    table = table.assign(
        clients=20, requests=requests, wall_ms=[2520.0, 882.0, 6500.0, 3000.0], runs=2
    )
    fig = retries.gate_width(table)
    labelled(fig)
    assert [ax.get_title(loc="left") for ax in fig.axes] == [
        "Soonest done with 3 slots", "Nothing refused up to 3 slots",
    ]  # fmt: skip
    assert all(ax.get_xlabel() and ax.get_ylabel() for ax in fig.axes)


def test_a_guess_of_a_gate_stands_among_the_times():
    rows = pd.DataFrame(
        {"width": [3, 5], "processes": 1, "clients": 20, "wall_ms": [882.0, 1126.0],
         "requests": [20, 22]}
    )  # fmt: skip
    times, counts = retries.gate_width(rows, guess_ms=3000).axes
    assert "your guess: 3,000" in [text.get_text() for text in times.texts]
    assert not counts.texts


def test_one_herd_on_the_axis_of_the_doublings(two_herds):
    naive, _ = two_herds
    fig = herds.one(naive, "t", until_s=None, note=notes.hundred(clients=12))
    assert fig.axes[1].get_xscale() == "symlog"
    assert "from 0.1 s on, each doubling" in fig.axes[1].get_xlabel()


def test_the_unluckiest_client():
    table = herd_tables.retry_after()
    fig = retries.retry_after(table)
    labelled(fig)
    bars = [bar.get_height() for bar in fig.axes[0].patches]
    assert bars == list(table.slept_ms[:-1])
    assert "(ms)" in fig.axes[0].get_ylabel()


def test_floor_rules_differ_in_more_than_colour():
    rows = [
        {"limiter": limiter, "floor": floor, "clients": 100, "requests": 500.0,
         "wall_s": 11.0, "peak_50ms": 90.0, "runs": 2}
        for limiter in ("capacity", "window") for floor in ("max", "plus", "ignore")
    ]  # fmt: skip
    fig = retries.retry_after_herd(pd.DataFrame(rows), guess_s=4)
    labelled(fig)
    bars = fig.axes[0].patches
    assert len({(to_hex(bar.get_facecolor()), bar.get_hatch()) for bar in bars}) == 3
    assert len({bar.get_hatch() for bar in bars}) == 3


def test_strategies_differ_in_more_than_colour():
    fig = laboratory.contention(contention((5, 10), seeds=2), guess_calls=30)
    labelled(fig)
    lines = fig.axes[1].lines
    assert len(lines) == 5
    assert len({line.get_marker() for line in lines}) == 5
    assert all(ax.get_xlabel() and ax.get_ylabel() for ax in fig.axes)


def test_attempts_stand_above_bills():
    fig = waits.idempotency(lanes.idempotency_lanes())
    labelled(fig)
    bills = [
        [text.get_text() for text in ax.texts].count("bill") for ax in fig.axes
    ]  # fmt: skip
    assert bills == [2, 1, 1]
    assert "(ms)" in fig.axes[-1].get_xlabel()
    provider, client = (label.get_position()[1] for label in (
        fig.axes[0].get_yticklabels()[::-1]
    ))  # fmt: skip
    assert client > provider


def test_who_stops_names_each_limit():
    fig = waits.who_stops(lanes.who_stops(), guess_s=30)
    labelled(fig)
    said = [text.get_text() for text in fig.axes[0].texts]
    for name in ("finished", "open_s", "idle_s", "total_s", "Stop"):
        assert any(text.startswith(name) for text in said)


def test_who_waits_for_ever_is_hatched():
    table = pd.DataFrame(
        {
            "client": ["ours", "endless", "thrice", "absent"],
            "default_s": [5.0, None, 600.0, None],
            "attempts": [1, 1, 3, None],
            "how_measured": ["fired", "default read", "default read", None],
            "skipped": [None, None, None, "not installed"],
        }
    )
    fig = waits.deadline(table, guess_s=60)
    labelled(fig)
    said = {text.get_text().strip() for text in fig.axes[0].texts}
    assert {"5 s", "for ever", "1,800 s (3 times 600 s)"} <= said
    assert len(fig.axes[0].get_yticks()) == 3  # who was skipped is not drawn


def test_abandon_has_a_bar_for_each_count():
    table = waiting.abandon()
    fig = waits.abandon(table, guess=3)
    labelled(fig)
    assert legend_of(fig.axes[0]) == ["seen", "generated", "billed"]
    assert len(fig.axes[0].patches) == 3 * len(table)


RESULTS = {
    "14.jitter": {
        "rows": JITTER.to_dict("records"),
        "published": [
            {"policy": "full", "summary": "median", "wall_s": 2.2},
            {"policy": "full", "summary": "chapter, run 1", "wall_s": 2.2},
        ],
    },
    "14.abandon": {"rows": waiting.abandon().to_dict("records"), "published": []},
    "14.limits": {"rows": [], "published": []},  # a table without a figure
}


def test_figures_are_written_as_png_and_svg(tmp_path):
    paths = figures.write(RESULTS, tmp_path / "out")
    assert sorted(path.name for path in paths) == [
        "14.abandon.png", "14.abandon.svg", "14.jitter.png", "14.jitter.svg",
    ]  # fmt: skip
    first = [path.read_bytes() for path in paths]
    again = [path.read_bytes() for path in figures.write(RESULTS, tmp_path / "again")]
    assert first == again


def test_every_figure_belongs_to_a_table():
    from labkit.experiments.catalogue import TABLES

    assert set(figures.FIGURES) <= {table.id for table in TABLES}


def test_chapter_walls():
    assert figures.chapter_walls(RESULTS["14.jitter"]["published"]) == {"full": [2.2]}


@pytest.fixture(scope="module")
def shot(tmp_path_factory):
    return film.write(tmp_path_factory.mktemp("film"), frames=3)


def test_the_film_is_small_and_loops(shot):
    gif, png = shot
    with Image.open(gif) as moving:
        assert moving.n_frames == 4
        assert moving.size == (720, 460)
        assert moving.info["loop"] == 0
        assert moving.convert("RGB").getpixel((400, 30)) == (255, 255, 255)
    with Image.open(png) as still:
        assert still.size == (1440, 920)


def test_the_film_runs_eight_to_twelve_seconds():
    middle_s = (film.FRAMES - 1) * film.STEP_MS / 1000
    assert 8 <= middle_s + (film.FIRST_MS + film.LAST_MS) / 1000 <= 12


def test_time_in_the_film_runs_ever_faster(two_herds):
    moments = film.Film(*two_herds).moments(10)
    steps = pd.Series(moments).diff().dropna()
    assert moments[0] == pytest.approx(0)
    assert steps.iloc[-1] > 3 * steps.iloc[0]
