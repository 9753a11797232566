"""Pictures of survival and of seconds: what each must show, whatever its looks."""

from functools import cache

import pandas as pd
import pytest

from labkit import figures
from labkit.experiments import lives, odds, people, seconds, silence, subagents
from labkit.plots import seconds as seconds_plots
from labkit.plots import style
from labkit.plots import survival as survival_plots

NOTE = "virtual clock"


# Each of them kills a process, which takes a second: once is enough.
resumed, torn, in_doubt = map(cache, (lives.resumed, lives.parallel, lives.in_doubt))


@pytest.fixture
def parallel():
    return torn()


LAG = pd.DataFrame(
    {
        "tool": ["async", "blocking, polls", "blocking, deaf"],
        "lag_ms": [0.0, 11.4, 2712.5],
    }
)
FLAKY = pd.DataFrame(
    {
        "tries": [1, 3],
        "runs": [20, 20],
        "finished_percent": [30.0, 100.0],
        "expected_percent": [35.849, 99.75],
    }
)
DRAWN = {
    "resumed": lambda: survival_plots.lives(resumed(), NOTE),
    "in doubt": lambda: survival_plots.lives(in_doubt(), NOTE),
    "stop": lambda: survival_plots.stop(people.cancel(), 1200, guess_ms=1500),
    "latency": lambda: seconds_plots.latency(silence.at_work(), guess_s=2),
    "views": lambda: seconds_plots.views(silence.views()),
    "trace": lambda: seconds_plots.trace(seconds.trace()),
    "flaky": lambda: seconds_plots.flaky(odds.odds(), FLAKY, guess_percent=80),
    "stop lag": lambda: seconds_plots.stop_lag(LAG, guess_ms=500),
    "subagent": lambda: seconds_plots.subagent(subagents.subagents()),
}


@pytest.fixture(params=DRAWN, scope="module")
def picture(request):
    return DRAWN[request.param]()


def said(fig) -> list[str]:
    return [text.get_text() for ax in fig.axes for text in ax.texts]


def test_the_bytes_are_the_same_each_time(picture):
    assert picture.png() == picture.png()


def test_it_says_what_is_seen_on_which_axis_and_which_clock(picture):
    assert "without" not in repr(picture)
    assert picture.get_supxlabel()
    for ax in picture.axes:
        shown = any(t.label1.get_visible() for t in ax.xaxis.get_major_ticks())
        assert ax.get_xlabel() or not shown or len(picture.axes) > 1
    assert picture.axes[-1].get_xlabel()


def test_no_text_is_cut_off_or_too_small(picture):
    picture.draw_without_rendering()
    page = picture.bbox
    every = [t for t in picture.findobj(style.mpl.text.Text) if t.get_text()]
    assert min(text.get_fontsize() for text in every) >= 9
    texts = [text for ax in picture.axes for text in ax.texts] + picture.texts
    texts += [part for ax in picture.axes for part in (ax.title, ax._left_title)]
    for text in (t for t in texts if t.get_text()):
        box = text.get_window_extent()
        assert box.x0 >= -1 and box.x1 <= page.x1 + 1, text.get_text()
        assert box.y0 >= -1 and box.y1 <= page.y1 + 1, text.get_text()


def test_the_events_agree_with_the_table(parallel):
    """The same figures as 23.parallel, from what was seen outside the process."""
    totals = lives.totals(parallel)
    assert totals.to_dict("index") == {
        "asks the model again": {"turns_paid": 3, "deletions": 2, "reads": 1},
        "runs the tools again": {"turns_paid": 2, "deletions": 2, "reads": 1},
        "pending()": {"turns_paid": 2, "deletions": 1, "reads": 1},
    }


def test_what_happens_twice_is_dashed_and_only_that(parallel):
    fig = survival_plots.lives(parallel, NOTE)
    dashed = [
        sum(box.get_linestyle() not in ("-", "solid") for box in ax.patches)
        for ax in fig.axes
    ]
    assert dashed == [2, 1, 0]
    assert [len(ax.patches) for ax in fig.axes] == [6, 5, 4]
    assert said(fig).count("killed") == 3


def test_turns_are_hatched_so_that_no_colour_is_needed(parallel):
    first = survival_plots.lives(parallel, NOTE).axes[0]
    hatched = [bool(box.get_hatch()) for box in first.patches]
    assert hatched == [True, False, True, False, False, True]


def test_the_legend_names_only_what_is_there(parallel):
    def kinds(events):
        legend = survival_plots.lives(events, NOTE).legends[0]
        return [text.get_text() for text in legend.get_texts()]

    assert "a write" in kinds(parallel) and "a write" not in kinds(resumed())


def test_a_disk_is_never_more_than_one_effect_behind(parallel):
    """Each write and each turn stands behind a save that announces it."""
    own = parallel[parallel.resume == lives.PENDING].reset_index()
    for place in own.index[own.lane == "model"]:
        assert own.event[place - 1] == f"{own.event[place]} sent"
    for place in own.index[own.event == "delete_file"]:
        assert own.event[place - 1] == "begun"


def test_a_person_is_asked_about_the_write_that_may_have_run():
    events = in_doubt()
    own = events[events.resume == lives.PENDING]
    second = list(own.event[own.process == 2])
    assert second[:2] == ["in doubt", "it ran"] and second[-1] == "completed"
    assert lives.totals(events).deletions.to_dict() == {
        "runs the tools again": 2, "pending()": 1,
    }  # fmt: skip


def test_the_run_of_three_turns_is_paid_once_over_two_processes():
    assert lives.totals(resumed()).turns_paid.to_list() == [3]


def test_what_a_killed_process_leaves_behind():
    state = lives.left_behind(lives.in_the_write)
    assert (state.status, state.started, state.turns) == ("running", ["c1"], 1)


def test_the_parts_of_a_run_add_up_to_its_wall():
    work = silence.at_work()
    walls = work.groupby("latency_ms").end_ms.max()
    assert (
        walls.to_dict() == seconds.latency().set_index("latency_ms").wall_ms.to_dict()
    )
    for _, own in work.groupby("latency_ms"):
        assert own.start_ms.iloc[1:].to_list() == own.end_ms.iloc[:-1].to_list()


def test_each_view_is_silent_for_a_shorter_time():
    quiet = silence.longest(silence.views()).longest_silence_ms
    assert quiet.to_list() == [7120, 7060, 3000, 2060]


def test_a_silence_is_as_long_as_it_says():
    assert {"silence 7.12 s", "silence 3 s"} <= set(said(DRAWN["views"]()))


def test_the_odds_are_those_of_the_table():
    table = odds.odds().set_index(["tries", "turns"]).finished_percent
    assert table[1, 20] == pytest.approx(35.849, abs=1e-3)
    assert table[3, 20] == pytest.approx(99.75, abs=1e-3)


def test_a_tool_that_was_skipped_is_not_drawn():
    table = LAG.assign(lag_ms=[0.0, None, None])
    assert len(seconds_plots.stop_lag(table).axes[0].lines) == 1


def test_a_stop_that_arrives_late_is_hatched():
    ax = DRAWN["stop"]().axes[0]
    late = [bar.get_width() for bar in ax.patches if bar.get_hatch()]
    assert late == [0, 0, 1800]


@pytest.mark.parametrize(
    "table_id, experiment",
    [
        ("23.cancel", people.cancel),
        ("23.latency", seconds.latency),
        ("23.trace", seconds.trace),
        ("23.subagent", subagents.subagents),
        ("23.stop_lag", people.stop_lag),
        ("23.resume", None),
        ("23.parallel", None),
        ("23.flaky", lambda: FLAKY),
    ],
)
def test_the_bench_draws_it(table_id, experiment, monkeypatch):
    monkeypatch.setattr(lives, "resumed", resumed)
    monkeypatch.setattr(lives, "parallel", torn)
    rows = experiment().to_dict("records") if experiment else []
    fig = figures.FIGURES[table_id]({"rows": rows, "published": []})
    assert fig.get_supxlabel() and "without" not in repr(fig)
