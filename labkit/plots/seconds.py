"""Where the seconds of a run go, and what a trace tells of it (chapter 23)."""

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from labkit.plots.style import (
    BLACK,
    BLUE,
    GREY,
    LINES,
    ORANGE,
    SKY,
    VERMILION,
    clock_note,
    figure,
    mark_guess,
    number,
)

AT_WORK = {
    "model": {"color": "white", "edgecolor": VERMILION, "hatch": "///"},
    "tool": {"color": SKY, "edgecolor": BLUE, "hatch": "..."},
}


def latency(
    work: pd.DataFrame, guess_s: float | None = None, note: str = "virtual clock"
) -> Figure:
    """One bar a latency, cut into the turns that it is made of.

    work: from `experiments.silence.at_work`. guess_s: of the third bar.
    """
    latencies = list(dict.fromkeys(work.latency_ms))
    fig, ax = figure(height_in=3.3)
    for place, each in enumerate(latencies):
        own = work[work.latency_ms == each]
        for row in own[own.end_ms > own.start_ms].itertuples():
            _part(ax, place, row, row.what)
        wall_s = own.end_ms.max() / 1000
        _beside(ax, f"{number(wall_s)} s", wall_s, place)
    ax.set_yticks(range(len(latencies)), [f"{each:,} ms" for each in latencies])
    ax.tick_params(axis="y", length=0)
    ax.set_ylim(len(latencies) - 0.4, -1.1 if guess_s is not None else -0.6)
    ax.set_xlim(0, work.end_ms.max() / 1000 * 1.14)
    ax.set(
        xlabel="time since the question (s)", ylabel="until each turn\nbegins to answer"
    )
    ax.set_title("A run lasts as long as its turns wait, one after the other")
    mark_guess(ax, guess_s, label="your guess for 1,000 ms (s)", at=0.99)
    clock_note(ax, note)
    return fig


def _part(ax: Axes, place: float, row, said: str) -> None:
    took_s = (row.end_ms - row.start_ms) / 1000
    ax.barh(
        [place], [took_s], left=row.start_ms / 1000, height=0.62, linewidth=1.2,
        **AT_WORK[row.who],
    )  # fmt: skip
    if took_s > 0.5:
        box = {"facecolor": "white", "edgecolor": "none", "pad": 1.2}
        middle_s = row.start_ms / 1000 + took_s / 2
        ax.text(middle_s, place, said, ha="center", va="center", fontsize=9, bbox=box)


def _beside(ax: Axes, text: str, x: float, y: float) -> None:
    box = {"facecolor": "white", "edgecolor": "none", "pad": 0.8}
    ax.annotate(
        text, (x, y), xytext=(6, 0), textcoords="offset points", va="center",
        fontsize=9.5, bbox=box, zorder=6,
    )  # fmt: skip


def views(shown: pd.DataFrame, note: str = "virtual clock") -> Figure:
    """One run as four user interfaces show it: ticks, and the silence between.

    shown: from `experiments.silence.views`.
    """
    names = [view for view in dict.fromkeys(shown["view"]) if view]
    fig, ax = figure(height_in=3.9)
    for row in shown[shown.event == "work"].itertuples():
        _part(ax, 0, row, f"the {row.who}")
    longest_s = {}
    for place, name in enumerate(names, 1):
        own = shown[shown["view"] == name]
        ticks = own.start_ms[own.event == "shown"] / 1000
        ax.vlines(ticks, place - 0.3, place + 0.3, color=BLUE, linewidth=2.6)
        quiet = own[own.event == "silence"]
        length = quiet.end_ms - quiet.start_ms
        longest_s[name] = length.max() / 1000
        first = quiet.loc[length.idxmax()]
        _silence(ax, place, first.start_ms / 1000, first.end_ms / 1000)
    ax.set_yticks(range(len(names) + 1), ["at work", *names])
    ax.tick_params(axis="y", length=0)
    ax.set_ylim(len(names) + 0.6, -0.6)
    ax.set_xlim(0, shown.end_ms.max() / 1000 * 1.02)
    ax.set_xlabel("time since the question (s); ticks: something appears")
    most, least = max(longest_s.values()), min(longest_s.values())
    ax.set_title(f"The longest silence: {number(most)} s, or {number(least)} s")
    clock_note(ax, note)
    return fig


def _silence(ax: Axes, place: float, start_s: float, end_s: float) -> None:
    arrow = {"arrowstyle": "<->", "color": BLACK, "shrinkA": 0, "shrinkB": 0}
    ax.annotate("", (end_s, place), (start_s, place), arrowprops=arrow)
    box = {"facecolor": "white", "edgecolor": "none", "pad": 1.2}
    said = f"silence {number(end_s - start_s)} s"
    ax.text(
        (start_s + end_s) / 2, place, said, ha="center", va="center", fontsize=9,
        bbox=box, zorder=6,
    )  # fmt: skip


def trace(events: pd.DataFrame, note: str = "virtual clock") -> Figure:
    """The lines of a trace, a panel for each run: which kind, in which order.

    events: from `experiments.seconds.trace`.
    """
    kinds = (
        "turn", "tool_start", "tool_progress", "tool_result", "approval_required",
        "run_stopped",
    )  # fmt: skip
    runs = list(events.groupby("run_id"))
    fig, axes = figure(
        1, len(runs), height_in=3.2, sharey=True, squeeze=False,
        width_ratios=[len(own) + 4 for _, own in runs],
    )  # fmt: skip
    for ax, (run_id, own) in zip(axes[0], runs, strict=True):
        lines, places = range(1, len(own) + 1), [kinds.index(t) for t in own.type]
        ax.plot(lines, places, color=GREY, linewidth=1, zorder=1)
        ax.plot(lines, places, linestyle="none", marker="o", color=BLUE, markersize=8)
        for line, row in zip(lines, own.itertuples(), strict=True):
            if row.type == "turn":
                said = f"${row.cost_usd:.6f}"
                ax.annotate(
                    said, (line, 0), xytext=(0, 8), textcoords="offset points",
                    ha="center", fontsize=9,
                )  # fmt: skip
        end = own.iloc[-1]
        why = "" if pd.isna(end.reason) else f": {end.reason}"
        ax.set_title(f"{run_id} is {end.status}{why}", fontsize=10.5)
        ax.set_yticks(range(len(kinds)), kinds)
        ax.set_ylim(len(kinds) - 0.6, -0.9)
        ax.set_xlim(-0.4, len(own) + 0.8)
        ax.set_xticks(lines)
        ax.set_xlabel("line of the run's trace")
        ax.grid(axis="y")
    clock_note(axes[0, 0], note)
    return fig


def flaky(
    odds: pd.DataFrame, table: pd.DataFrame, guess_percent: float | None = None,
    note: str = "virtual clock",
) -> Figure:  # fmt: skip
    """The share of runs that finish, by their length: arithmetic, and measured.

    odds: from `experiments.odds`. table: from `experiments.seconds.flaky`.
    guess_percent: of runs of twenty turns with one try.
    """
    fig, ax = figure(height_in=3.4)
    for look, (tries, own) in zip(LINES, odds.groupby("tries"), strict=False):
        name = "one try a turn" if tries == 1 else f"{tries} tries a turn"
        style = {"linestyle": look["linestyle"], "color": BLUE}
        ax.plot(own.turns, own.finished_percent, **style)
        last = own.iloc[-1]
        _beside(ax, name, last.turns, last.finished_percent)
    ax.plot(
        [20] * len(table), table.finished_percent, linestyle="none", marker="o",
        markersize=9, color=VERMILION, markeredgecolor=BLACK, zorder=5,
        label=f"measured, {table.runs.iloc[0]} runs each",
    )  # fmt: skip
    one = table.set_index("tries").expected_percent.loc[1]
    ax.set_title(f"Twenty turns, one try each: {one:.0f} % get to the end")
    ax.set_xlim(0, odds.turns.max() * 1.27)
    ax.set_ylim(0, 105)
    ax.set_xticks(range(0, odds.turns.max() + 1, 10))
    ax.set(xlabel="turns of the run", ylabel="runs that finish (%)")
    ax.legend(loc="lower left")
    mark_guess(ax, guess_percent, axis="y", at=0.42)
    clock_note(ax, note)
    return fig


def stop_lag(
    table: pd.DataFrame, guess_ms: float | None = None, note: str = "real clock"
) -> Figure:
    """How long after Stop a run has ended, by the kind of tool it hit.

    table: from `experiments.people.stop_lag`. guess_ms: of the deaf one.
    """
    rows = table[table.lag_ms.notna()]
    fig, ax = figure(height_in=0.5 * len(rows) + 1.6)
    least = 0.1  # a logarithm has no zero, hence dots: a bar would have to begin there
    for place, row in enumerate(rows.itertuples()):
        lag_ms = max(row.lag_ms, least)
        ax.plot(lag_ms, place, "o", color=BLUE, markersize=10, clip_on=False)
        _beside(ax, f" {number(round(row.lag_ms, 1))} ms", lag_ms, place)
    ax.set_xscale("log")
    ax.set_xlim(least, 30_000)
    ax.set_xticks([0.1, 1, 10, 100, 1000, 10_000],
                  ["0.1", "1", "10", "100", "1,000", "10,000"])  # fmt: skip
    ax.minorticks_off()
    ax.set_yticks(range(len(rows)), rows.tool)
    ax.tick_params(axis="y", length=0)
    room = 1.05 if guess_ms is not None else 0.6
    ax.set_ylim(len(rows) - 0.4, -room)
    ax.grid(axis="y")
    ax.set_xlabel("from Stop to the end of the run (ms; each tenfold the same room)")
    waited = rows.lag_ms.max() > 1000
    told = (
        "A tool that never looks is waited for" if waited else "Stop reaches the tool"
    )
    ax.set_title(told)
    mark_guess(ax, guess_ms, at=0.99)
    clock_note(ax, note)
    return fig


def subagent(table: pd.DataFrame, note: str = "virtual clock") -> Figure:
    """What the parent's budget sees, and what both of them spent.

    table: from `experiments.subagents.subagents`.
    """
    cases = list(dict.fromkeys(table.case))
    fig, axes = figure(len(cases), height_in=1.15 * len(cases) + 1.5, sharex=True)
    for ax, case in zip(axes, cases, strict=True):
        own = table[table.case == case]
        paid, seen = own.paid_usd * 1000, own.cost_usd * 1000
        hidden = {"color": "white", "edgecolor": VERMILION, "hatch": "///"}
        ax.barh(own.variant, paid, height=0.6, label="spent, not seen", **hidden)
        counted = {"color": ORANGE, "edgecolor": BLACK}
        ax.barh(own.variant, seen, height=0.6, label="seen by the budget", **counted)
        for place, row in enumerate(own.itertuples()):
            said = row.status + (f": {row.waits_for}" if row.waits_for else "")
            _beside(ax, said, row.paid_usd * 1000, place)
        ax.set_ylim(1.55, -0.55)
        ax.tick_params(axis="y", length=0)
        ax.set_title(case[0].upper() + case[1:], fontsize=10.5)
    axes[-1].set_xlim(0, table.paid_usd.max() * 1000 * 1.45)
    axes[-1].set_xlabel("cost (thousandths of a US dollar)")
    handles, labels = axes[0].get_legend_handles_labels()
    fig.legend(handles[::-1], labels[::-1], loc="outside upper center", ncols=2)
    clock_note(axes[-1], note)
    return fig
