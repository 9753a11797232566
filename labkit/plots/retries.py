"""What retries come to: walls, gates, and Retry-After."""

from collections import Counter

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from labkit.experiments.waves import waves
from labkit.plots.style import (
    BLUE,
    FAINT,
    GREY,
    SKY,
    VERMILION,
    bar_labels,
    clock_note,
    figure,
    mark_guess,
    number,
)

RULES = {
    "max": ("max(header, draw)", {"color": BLUE}),
    "plus": ("header + draw", {"color": SKY, "hatch": "///"}),
    "ignore": ("header ignored", {"color": "white", "hatch": "..."}),
}


def walls(
    table: pd.DataFrame,
    chapter_s: dict[str, list[float]] | None = None,
    guess_s: float | None = None,
    note: str = "virtual clock",
) -> Figure:
    """One dot a seed: how long a herd took. Without jitter they stand on the waves.

    table: from `herd_tables.jitter`. chapter_s: what the chapter printed, a list for
    each policy; drawn as crosses.
    """
    fig, (bare, full) = figure(2, height_in=4.6, height_ratios=[1.25, 1])
    chapter_s = chapter_s or {}
    seeds = table[table.seed.notna()]
    naive_s = list(seeds.wall_s[seeds.policy == "exponential"])
    jitter_s = list(seeds.wall_s[seeds.policy == "full"])
    _wave_grid(bare, max(naive_s + chapter_s.get("exponential", [])))
    # One place a wave; and for jitter, one for each tenth of a second.
    _dots(bare, naive_s, 20.0, 5.4, chapter_s.get("exponential", []))
    _dots(full, jitter_s, 0.1, 0.0, chapter_s.get("full", []))
    bare.set_title("Without jitter the last answer comes with a wave: 20 s apart")
    slowest_s = max(jitter_s)
    title = f"Full jitter: each of {len(jitter_s)} runs is over in {slowest_s:.1f} s"
    full.set_title(title)
    full.set_xlim(0, max(slowest_s, 3.0) * 1.25)
    said = "until the last client is answered (s"
    bare.set(xlabel=f"{said}; counted by waves)", ylabel="runs")
    full.set(xlabel=f"{said}; to a tenth)", ylabel="runs")
    full.legend(loc="upper right")
    mark_guess(bare, guess_s, at=0.72)
    clock_note(full, note)
    return fig


def _wave_grid(ax: Axes, end_s: float) -> None:
    ax.set_xlim(0, end_s + 15)
    for wave in waves(60).itertuples():
        if 40 < wave.starts_s < end_s + 15:
            ax.axvline(wave.starts_s, color=FAINT, linewidth=1, zorder=0)
            ax.annotate(
                str(wave.wave), (wave.starts_s, 0.99),
                xycoords=("data", "axes fraction"), ha="center", va="top",
                fontsize=9, color=GREY, annotation_clip=True,
                bbox={"facecolor": "white", "edgecolor": "none", "pad": 1.5},
            )  # fmt: skip
    ax.annotate(
        "wave", (38, 0.99), xycoords=("data", "axes fraction"), ha="right",
        va="top", fontsize=9, color=GREY,
    )  # fmt: skip


def _dots(
    ax: Axes, runs_s: list[float], step_s: float, first_s: float, printed: list[float]
) -> None:
    """Dots stacked where they fall: each is a run, a cross one of the chapter's."""
    stacked: Counter = Counter()
    for times_s, look in (
        (runs_s, {"marker": "o", "color": BLUE, "s": 34, "label": "labkit, one seed"}),
        (printed, {"marker": "x", "color": VERMILION, "s": 46, "linewidth": 2,
                   "label": "the chapter, one run"}),
    ):  # fmt: skip
        places = []
        for time_s in sorted(times_s):
            place = round((time_s - first_s) / step_s)
            stacked[place] += 1
            places.append((first_s + place * step_s, stacked[place]))
        if places:
            ax.scatter(*zip(*places, strict=True), **look)
    top = max(stacked.values(), default=1)
    ax.set_ylim(0.2, top * 1.25 + 1)
    ax.yaxis.get_major_locator().set_params(integer=True)


def gate_width(
    table: pd.DataFrame, capacity: int = 3, guess_ms: float | None = None,
    note: str = "virtual clock",
) -> Figure:  # fmt: skip
    """How wide should a gate be? Time and requests against the width.

    table: from `herd_tables.gate_width`. guess_ms: of a gate that is too wide.
    """
    fig, axes = figure(1, 2, height_in=3.2)
    clients = int(table.clients.iloc[0])
    one = table[table.processes == 1]
    several = table[table.processes > 1]
    for ax, column, label in (
        (axes[0], "wall_ms", "until the last is answered (ms)"),
        (axes[1], "requests", f"requests for {clients} answers"),
    ):
        ax.axvline(capacity, color=GREY, linestyle=":", linewidth=1.2)
        ax.plot(one.width, one[column], "o-", color=BLUE, label="one gate for all")
        ax.plot(
            several.width * several.processes, several[column], "s", color=VERMILION,
            markerfacecolor="none", markersize=9, markeredgewidth=1.8,
            label="a gate of 3 in each process",
        )  # fmt: skip
        ax.set_xlabel("slots, all gates together")
        ax.set_ylabel(label)
        ax.set_ylim(0, table[column].max() * 1.25)
        ax.set_xticks(sorted(set(one.width) - {2, 4}))
    axes[0].annotate(
        f"capacity {capacity}", (capacity, 1), xycoords=("data", "axes fraction"),
        xytext=(4, 0), textcoords="offset points", va="top", fontsize=9, color=GREY,
    )  # fmt: skip
    best = one.width[one.wall_ms.idxmin()]
    quiet = one.width[one.requests == clients].max()
    axes[0].set_title(f"Soonest done with {best} slots")
    axes[1].set_title(f"Nothing refused up to {quiet} slots")
    axes[1].legend(loc="upper left")
    mark_guess(axes[0], guess_ms, axis="y", at=0.52)
    clock_note(axes[0], note)
    return fig


def retry_after(table: pd.DataFrame, note: str = "virtual clock") -> Figure:
    """The unluckiest client: what it drew, what the header asked, how long it slept.

    table: from `herd_tables.retry_after`.
    """
    fig, ax = figure(height_in=3.2)
    waits = table[table.slept_ms > 0]
    ax.bar(
        waits.attempt, waits.slept_ms, width=0.62, color=SKY, edgecolor=BLUE,
        label="slept: the longer of the two",
    )  # fmt: skip
    ax.hlines(
        waits.floor_ms, waits.attempt - 0.42, waits.attempt + 0.42, color=VERMILION,
        linewidth=2.2, linestyle="--", label="floor: Retry-After",
    )  # fmt: skip
    ax.plot(
        waits.attempt, waits.draw_ms, linestyle="none", marker="D", markersize=7,
        color="black", label="draw: the client's own jitter",
    )  # fmt: skip
    for wait in waits.itertuples():
        drawn = wait.draw_ms >= wait.slept_ms  # a diamond lies on the end of this bar
        ax.annotate(
            f"{number(round(wait.slept_ms))} ms", (wait.attempt, wait.slept_ms),
            xytext=(0, 8 if drawn else 5), textcoords="offset points", ha="center",
            fontsize=9.5,
        )  # fmt: skip
    last = table.iloc[-1]
    ax.annotate(
        f"HTTP {last.status:.0f}\nafter {last.t_ms:,.0f} ms", (last.attempt, 0),
        xytext=(0, 4), textcoords="offset points", ha="center", fontsize=9.5,
    )  # fmt: skip
    ax.set_xticks(table.attempt)
    ax.set_ylim(0, waits.slept_ms.max() * 1.2)
    ax.set(xlabel="attempt", ylabel="wait after it (ms)")
    ax.set_title("The wait is the longer of two: the header, or the draw")
    ax.legend(loc="upper left")
    clock_note(ax, note)
    return fig


def retry_after_herd(
    table: pd.DataFrame, guess_s: float | None = None, note: str = "virtual clock"
) -> Figure:
    """Three rules for Retry-After, for two kinds of limit.

    table: from `herd_tables.retry_after_herd`. guess_s: of max(), capacity.
    """
    fig, grid = figure(2, 3, height_in=4.2, sharey=True)
    said = {
        "capacity": "Header says 1 s,\nwhatever happens",
        "window": "Header tells when\nthe window begins",
    }
    columns = {
        "requests": "requests", "wall_s": "last answer (s)",
        "peak_50ms": "most retries in 50 ms",
    }  # fmt: skip
    for axes, (limiter, rows) in zip(grid, table.groupby("limiter"), strict=True):
        for ax, (column, label) in zip(axes, columns.items(), strict=True):
            for place, row in enumerate(rows.iloc[::-1].to_dict("records")):
                name, look = RULES[row["floor"]]
                bars = ax.barh([place], [row[column]], edgecolor=BLUE, **look)
                bar_labels(ax, bars)
            ax.set_xlim(0, table[column].max() * 1.3)
            ax.set_yticks(range(3), [RULES[f][0] for f in rows.floor[::-1]])
            ax.tick_params(axis="y", length=0)
            if limiter == "window":
                ax.set_xlabel(label)
        axes[0].set_title(said[limiter], fontsize=10.5)
    if guess_s is not None:  # its words stand below the bars
        grid[0, 1].set_ylim(-1.1, 2.6)
    mark_guess(grid[0, 1], guess_s, label="guess", at=0.14)
    clock_note(grid[0, 0], note)
    return fig
