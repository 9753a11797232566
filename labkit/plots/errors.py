"""What an error says, and what repeats cost (notebook 05).

A bar is a run. Full: it ended with an answer; dotted: with an apology; hatched: with
neither. What came of it stands below, since a bill alone does not say what was bought.
"""

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from labkit.plots.loop import SOLID, TOP_LEFT, WHITE, usd
from labkit.plots.style import (
    BLACK,
    BLUE,
    HATCHES,
    SKY,
    VERMILION,
    clock_note,
    figure,
    mark_guess,
)

POLICIES = {
    "fatal": "nothing:\nthe run stops",
    "opaque": "that it failed",
    "words": "what happened,\nwhat to do",
    "fed back": "told to\nthe model",
    "stops the run": "ends\nthe run",
}
ANSWERED = {"color": BLUE}
GAVE_UP = {"color": SKY, "hatch": HATCHES[2]}
IN_VAIN = {"color": "white", "hatch": HATCHES[1]}


def wordings(
    table: pd.DataFrame, guess: float | None = None, note: str = "virtual clock"
) -> Figure:
    """One fault, three wordings: what each run cost, and what it answered.

    table: from `error_tables.tool_errors`. guess: how many times as dear as the first
    the last one is.
    """
    fig, ax = figure(height_in=3.7)
    _bars(ax, table, table.times_fatal, guess)
    ax.set_xlabel("the run's bill (times that of the run that stops)")
    ax.set_ylabel("what the model is told")
    most = table.times_fatal.iloc[-1]
    ax.set_title(f"One sentence more: {most:.1f} times the bill, and the only answer")
    mark_guess(ax, guess, at=0.09)
    clock_note(ax, note)
    return fig


def permanent(
    table: pd.DataFrame, guess: float | None = None, note: str = "virtual clock"
) -> Figure:
    """An error that no words can help: told to the model, or the end of the run.

    table: from `error_tables.permanent_error`. guess: of the times of the first row.
    """
    fig, ax = figure(height_in=3.0)
    _bars(ax, table, table.times_recovered, guess)
    ax.axvline(1, color=BLACK, linestyle=":", linewidth=1.4, zorder=1)
    ax.annotate(
        "the run that recovered", (1, 0.99), xytext=(5, 0), va="top",
        xycoords=("data", "axes fraction"), textcoords="offset points", fontsize=9.5,
    )  # fmt: skip
    ax.set_ylim(top=-0.75)  # room for those words
    ax.set_xlabel("the run's bill (times that of the run that recovered)")
    runs, times = table.tool_runs.iloc[0], table.times_recovered.iloc[0]
    ax.set_title(f"{runs} equal calls in vain: {times:.1f} times the bill, no answer")
    mark_guess(ax, guess, at=0.12)
    clock_note(ax, note)
    return fig


def _bars(ax: Axes, table: pd.DataFrame, times: pd.Series, guess: float | None) -> None:
    """A bar a run: its bill at the end, and below it what came of it."""
    for place, row in enumerate(table.itertuples()):
        look = GAVE_UP if row.answer and row.policy == "opaque" else ANSWERED
        look = look if row.answer else IN_VAIN
        long = times.iloc[place]
        ax.barh([place], [long], height=0.36, edgecolor=BLACK, **look)
        turns = f"{row.turns} turn{'s' if row.turns > 1 else ''}"
        ax.annotate(
            f"{turns}, {usd(row.cost_usd, 6)}", (long, place), xytext=(5, 0),
            textcoords="offset points", va="center", fontsize=9.5, bbox=WHITE, zorder=6,
        )  # fmt: skip
        ax.annotate(
            _outcome(row), (0, place + 0.19), xytext=(3, -3), style="italic",
            textcoords="offset points", va="top", fontsize=9.5, bbox=WHITE, zorder=6,
        )  # fmt: skip
    labels = [POLICIES.get(each, each) for each in table.policy]
    ax.set_yticks(range(len(table)), labels)
    ax.tick_params(axis="y", length=0)
    ax.set_ylim(len(table) - 0.4 + (guess is not None) * 0.35, -0.35)
    ax.set_xlim(0, max(times.max() * 1.35, (guess or 0) * 1.06))


def _outcome(row) -> str:
    if row.answer:
        return f'"{row.answer}"'
    why = getattr(row, "error", "") or "no answer"
    return f"{row.status}: {why}"


def repeats(table: pd.DataFrame, note: str = "virtual clock") -> Figure:
    """The same read once, twice, and twice with a memory: the bill, and the work.

    table: from `error_tables.dedupe`.
    """
    fig, (bill, work) = figure(1, 2, height_in=2.9, sharey=True, width_ratios=[2, 1])
    places = range(len(table))
    bill.barh(places, table.cost_usd, height=0.55, color=BLUE, edgecolor=BLACK)
    work.barh(
        places, table.tool_runs, height=0.55, color=SKY, edgecolor=BLACK,
        hatch=HATCHES[1],
    )  # fmt: skip
    for place, row in enumerate(table.itertuples()):
        more = f" (+{row.more_percent:.0f} %)" if row.more_usd else ""
        for ax, at, said in (
            (bill, row.cost_usd, f"{row.turns} turns, {usd(row.cost_usd, 6)}{more}"),
            (work, row.tool_runs, str(row.tool_runs)),
        ):
            ax.annotate(
                said, (at, place), xytext=(5, 0), textcoords="offset points",
                va="center", fontsize=9.5,
            )  # fmt: skip
    bill.set_yticks(places, [each.replace(", ", ",\n") for each in table.case])
    for ax in (bill, work):
        ax.tick_params(axis="y", length=0)
    bill.set_ylim(len(table) - 0.5, -0.5)
    bill.set_xlim(0, table.cost_usd.max() * 1.75)
    bill.locator_params(axis="x", nbins=4)
    work.set_xlim(0, table.tool_runs.max() * 1.25)
    work.set_xticks(range(table.tool_runs.max() + 1))
    bill.set_xlabel("the run's bill ($)")
    work.set_xlabel("tool runs (number)")
    fig.suptitle(
        "A memory saves the second tool run, and none of the money", **TOP_LEFT
    )
    clock_note(bill, note)
    return fig


def without_progress(table: pd.DataFrame, note: str = "virtual clock") -> Figure:
    """Four models, with and without a condition that asks for progress.

    table: from `error_lanes.without_progress`.
    """
    fig, ax = figure(height_in=3.6)
    looks = (
        {"color": SKY},
        {"color": VERMILION, "hatch": HATCHES[1]},
    )
    models, conditions = table.model.unique(), table.condition.unique()
    for shift, (condition, look) in enumerate(zip(conditions, looks, strict=True)):
        rows = table[table.condition == condition]
        places = [place + (shift - 0.5) * 0.36 for place in range(len(rows))]
        said = "a cap of 12 turns" if condition == "none" else f"and {condition}"
        ax.barh(places, rows.cost_usd, height=0.34, edgecolor=BLACK, label=said, **look)
        for place, row in zip(places, rows.itertuples(), strict=True):
            ax.annotate(
                f"{row.turns} turns, {row.status}", (row.cost_usd, place),
                xytext=(5, 0), textcoords="offset points", va="center", fontsize=9.5,
            )  # fmt: skip
    ax.set_yticks(range(len(models)), models)
    ax.tick_params(axis="y", length=0)
    ax.set_ylim(len(models) - 0.4, -0.6)
    ax.set_xlim(0, table.cost_usd.max() * 1.58)
    ax.set_xlabel("the run's bill ($)")
    ax.set_title("Who gets nowhere is stopped; who gets on is left alone")
    ax.legend(loc="lower right", **SOLID)
    clock_note(ax, note)
    return fig
