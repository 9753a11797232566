"""Pictures of the loop, its bill and its errors: what each must show."""

import pytest
from matplotlib.text import Text

from labkit import figures
from labkit.experiments import (
    error_lanes,
    error_tables,
    loop_tables,
    turn_by_turn,
)
from labkit.experiments.catalogue import TABLES
from labkit.plots import errors, loop, spending
from labkit.tables import compute

NOTE = "virtual clock"
BUDGETS = ("0.001", "0.002", "0.003")


@pytest.fixture(scope="module")
def twenty():
    return turn_by_turn.turns("runaway", 20)


def draw_cap(guess_usd=None):
    caps = loop_tables.turn_cap((4, 8, 20))
    return loop.turn_cap(turn_by_turn.turns("runaway", 20), caps, guess_usd, NOTE)


DRAWN = {
    "prompts": lambda: loop.prompts(turn_by_turn.turns("plan"), 300),
    "turn_cap": lambda: draw_cap(0.02),
    "budget": lambda: spending.budget(
        loop_tables.budget(BUDGETS), turn_by_turn.turns("runaway", 20), NOTE
    ),
    "overshoot": lambda: spending.overshoot(loop_tables.budget(BUDGETS), 0.002),
    "catalogue": lambda: loop.catalogue(loop_tables.catalogue(turns=3), 30),
    "caching": lambda: loop.caching(loop_tables.caching((4, 8)), 0.003),
    "wordings": lambda: errors.wordings(error_tables.tool_errors(), 2),
    "permanent": lambda: errors.permanent(error_tables.permanent_error(), 20),
    "repeats": lambda: errors.repeats(error_tables.dedupe()),
    "progress": lambda: errors.without_progress(error_lanes.without_progress()),
}


@pytest.fixture(params=DRAWN)
def picture(request):
    return DRAWN[request.param]()


def test_it_is_the_same_each_time_and_says_what_is_seen(picture):
    assert picture.png() == picture.png()
    assert repr(picture).startswith("figure: ") and "without a" not in repr(picture)
    assert NOTE in picture.get_supxlabel()


def test_its_axes_have_labels_and_no_text_is_cut_off_or_small(picture):
    for ax in picture.axes:
        assert ax.get_xlabel()
    picture.draw_without_rendering()
    texts = [text for ax in picture.axes for text in ax.texts] + picture.texts
    texts += [part for ax in picture.axes for part in (ax.title, ax._left_title)]
    every = [text for text in picture.findobj(Text) if text.get_text()]
    assert min(text.get_fontsize() for text in every) >= 9
    for text in (each for each in texts if each.get_text()):
        box = text.get_window_extent()
        assert box.x0 >= -1 and box.x1 <= picture.bbox.x1 + 1, text.get_text()


def test_two_dollar_signs_would_be_a_formula(picture):
    for text in picture.findobj(Text):
        assert text.get_text().count("$") <= 1, text.get_text()


def words(ax) -> str:
    return "\n".join(text.get_text() for text in ax.texts)


def test_the_prompts_are_cut_into_what_was_sent_before_and_what_is_new():
    (ax,) = loop.prompts(turn_by_turn.turns("plan")).axes
    again, new = ax.containers
    assert list(again.datavalues) == [0, 204, 269]
    assert list(new.datavalues) == [204, 65, 73]
    assert all(bar.get_hatch() for bar in again) and not new[0].get_hatch()
    assert ax.get_title(loc="left").startswith("473 of 815")


def test_the_triangle_and_the_parabola_are_the_same_run(twenty):
    triangle, parabola = draw_cap().axes
    assert "16,259" in triangle.get_title(loc="left")
    curve = parabola.lines[0]
    assert list(curve.get_ydata()) == list(twenty.spent_usd)
    assert "20 turns: $0.038" in words(parabola)


def test_the_straight_line_goes_through_the_cap_that_the_reader_was_told():
    caps = loop_tables.turn_cap((8, 20, 50))
    turns = turn_by_turn.turns("runaway", 50)
    straight = loop.turn_cap(turns, caps).axes[1].lines[1]
    told = caps.cost_usd[1] / 20
    assert list(straight.get_ydata()) == pytest.approx([0, 50 * told])
    assert straight.get_label() == "had all cost what the first 20 did"


def test_a_budget_is_passed_by_its_last_turn_only(twenty):
    (ax,) = spending.budget(loop_tables.budget(("0.010",)), twenty).axes
    (turns,) = ax.containers
    ends = [bar.get_x() + bar.get_width() for bar in turns]
    assert len(ends) == 9 and ends[-2] < 100 < ends[-1]
    assert turns[-1].get_hatch() and not turns[-2].get_hatch()
    assert "9 turns, $0.010780: 7.8 % over" in words(ax)


def test_the_bars_stand_with_their_answers():
    (ax,) = errors.wordings(error_tables.tool_errors()).axes
    assert "I do not know" in words(ax) and "mentions a timeout" in words(ax)
    looks = {bar.get_hatch() for bars in ax.containers for bar in bars}
    assert len(looks) == 3  # told apart without colour
    assert "4.7 times" in ax.get_title(loc="left")


def test_the_permanent_error_ends_with_its_reason():
    (ax,) = errors.permanent(error_tables.permanent_error()).axes
    assert "failed: permission denied: /etc/shadow" in words(ax)
    assert ax.get_title(loc="left").startswith("11 equal calls in vain: 5.2 times")


@pytest.mark.parametrize("table", [t for t in TABLES if t.id in (
    "23.plan", "23.turn_cap", "23.budget", "23.caching", "23.catalogue",
    "23.tool_errors", "23.permanent_error", "23.dedupe",
)], ids=lambda table: table.id)  # fmt: skip
def test_the_bench_draws_it(table):
    fig = figures.FIGURES[table.id](compute(table, seeds=1))
    assert "scripted model" in fig.get_supxlabel()


# What the pictures are made of


def test_turns_add_up_to_the_table(twenty):
    row = loop_tables.turn_cap((20,)).iloc[0]
    assert twenty.prompt_tokens.sum() == row.prompt_tokens == 16_259
    assert twenty.spent_usd.iloc[-1] == row.cost_usd
    assert twenty.turn_usd.sum() == pytest.approx(row.cost_usd)
    assert set(twenty.prompt_tokens.diff().dropna()) == {64, 65}


def test_a_prompt_made_longer_by_so_much_costs_so_many_times():
    row = turn_by_turn.fixed_part_for((10,)).iloc[0]
    more_usd = 20 * row.more_tokens_a_turn * 2e-6
    assert 0.038038 + more_usd == pytest.approx(row.cost_usd, abs=1e-4)
    assert row.or_tokens_a_tool == round(row.more_tokens_a_turn / 200)


def test_a_raised_cap_goes_on_as_if_it_had_been_higher_from_the_start():
    capped, raised, straight = turn_by_turn.resumed().to_dict("records")
    assert (capped["turns"], capped["tool_runs"]) == (12, 11)
    counted = ("turns", "tool_runs", "prompt_tokens", "cost_usd", "status")
    assert [raised[n] for n in counted] == [straight[n] for n in counted]


def test_without_a_price_a_budget_stops_before_the_first_turn():
    free, closed, priced = turn_by_turn.unpriced().to_dict("records")
    assert (free["status"], free["unpriced_turns"]) == ("completed", 3)
    assert (closed["status"], closed["turns"]) == ("interrupted", 0)
    assert "add it to prices" in closed["reason"]
    assert priced["cost_usd"] == 0.00247


def test_a_memory_of_everything_swallows_the_second_write():
    assert list(error_lanes.calls(dedupe="everything").ran) == [True, False]
    assert list(error_lanes.calls(dedupe=True).ran) == [True, True]
    assert list(error_lanes.calls("repeat", dedupe=True).ran) == [True, False]


def test_what_the_model_reads_of_a_tool_that_is_not_there():
    lines = error_lanes.told("recover", without="read_file")
    assert lines.says[1].startswith("Error: there is no tool read_file; the tools are")
    assert list(lines.who) == ["model", "tool", "model"]


def test_broken_arguments_are_answered_with_how_to_call_the_tool():
    rows = error_lanes.malformed().set_index("case")
    good = rows.loc["as it should be"]
    assert good.json_says == "fine" and good.model_reads.startswith("runs, with")
    bad = rows.drop("as it should be").model_reads
    assert all(each.endswith("It takes path (string)") for each in bad)
    assert (rows.json_says == "fine").sum() == 4


def test_no_progress_stops_the_two_that_get_nowhere():
    rows = error_lanes.without_progress(cap=6)
    stopped = rows[rows.status == "interrupted"]
    assert list(stopped.model) == ["asks in vain", "never ends"]
    assert set(stopped.turns) == {3}
