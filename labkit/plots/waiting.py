"""Who waits, who stops, and who pays (chapter 14, deadlines and idempotency)."""

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from labkit.plots.style import (
    BLUE,
    FAINT,
    ORANGE,
    SKY,
    VERMILION,
    bar_labels,
    clock_note,
    figure,
    mark_guess,
    number,
)


def idempotency(lanes: pd.DataFrame, note: str = "virtual clock") -> Figure:
    """The client's attempts above what the provider generated, and billed.

    lanes: from `experiments.lanes.idempotency_lanes`.
    """
    keys = list(dict.fromkeys(lanes.key))
    fig, axes = figure(len(keys), height_in=1.75 * len(keys) + 0.5, sharex=True)
    end_ms = lanes.end_ms.max()
    for ax, key in zip(axes, keys, strict=True):
        own = lanes[lanes.key == key]
        for row in own[own.lane == "client"].itertuples():
            _attempt(ax, row)
        made = own[own.lane == "provider"]
        for row in made.itertuples():
            _generation(ax, row)
        got = "an answer" if "timeout" not in set(own.outcome[own.number == 1]) else (
            "no answer"
        )  # fmt: skip
        bills = f"{len(made)} bill{'s' if len(made) != 1 else ''}"
        ax.set_title(f"{key[0].upper()}{key[1:]}: {bills}, and the client has {got}")
        ax.set_yticks([1, 0], ["client", "provider"])
        ax.set_ylim(-0.62, 1.62)
        ax.tick_params(axis="y", length=0)
        ax.grid(axis="x")
    axes[-1].set_xlim(-20, end_ms * 1.12)
    axes[-1].set_xlabel("time since the first attempt (ms)")
    clock_note(axes[-1], note)
    return fig


def _attempt(ax: Axes, row) -> None:
    """An attempt as a bar: hollow if nothing came of it, full if an answer did."""
    failed = row.outcome == "timeout"
    took_ms = max(row.end_ms - row.start_ms, 6)  # a replay takes no time at all
    ax.barh(
        [1], [took_ms], left=row.start_ms, height=0.5, linewidth=1.5,
        edgecolor=VERMILION if failed else BLUE, color="white" if failed else BLUE,
        hatch="///" if failed else "",
    )  # fmt: skip
    said = f"attempt {row.number}: {row.outcome}"
    if row.id:
        said += f" {row.id}"
    ax.annotate(
        said, (row.start_ms, 1.3), xytext=(0, 1), textcoords="offset points",
        fontsize=9.5,
    )  # fmt: skip


def _generation(ax: Axes, row) -> None:
    took_ms = row.end_ms - row.start_ms
    ax.barh(
        [0], [took_ms], left=row.start_ms, height=0.5, color=SKY, edgecolor=BLUE,
        linewidth=1.2,
    )  # fmt: skip
    ax.text(row.start_ms + 12, 0, f"generates {row.id}", va="center", fontsize=9.5)
    ax.annotate(
        "bill", (row.end_ms, 0), xytext=(-8, 0), textcoords="offset points",
        va="center", ha="right", fontsize=9.5, fontweight="bold",
        bbox={"boxstyle": "round,pad=0.25", "facecolor": ORANGE, "edgecolor": "black"},
    )  # fmt: skip


MARKS = {
    "the answer": ("o", BLUE, "finished"),
    "open": ("X", VERMILION, "open_s"),
    "idle": ("X", VERMILION, "idle_s"),
    "total": ("X", VERMILION, "total_s"),
    "stop": ("s", "black", "Stop"),
}


def who_stops(
    events: pd.DataFrame, guess_s: float | None = None, note: str = "virtual clock"
) -> Figure:
    """One row a stream: ticks are pieces, hatched is the silence that was too long.

    events: from `experiments.lanes.who_stops`. guess_s: of the stream that stalls.
    """
    scenes = list(dict.fromkeys(events.scene))
    fig, ax = figure(height_in=0.52 * len(scenes) + 1.5)
    for place, scene in enumerate(reversed(scenes)):
        own = events[events.scene == scene]
        pieces = own.t_s[own.event == "piece"]
        end = own.iloc[-1]
        ax.hlines(place, 0, end.t_s, color=FAINT, linewidth=1.2, zorder=0)
        ax.vlines(pieces, place - 0.24, place + 0.24, color=BLUE, linewidth=1.1)
        if end.by in ("open", "idle"):
            began_s = pieces.max() if end.by == "idle" else 0.0
            ax.barh(
                [place], [end.t_s - began_s], left=began_s, height=0.44,
                color="white", edgecolor=VERMILION, hatch="///", linewidth=0.8,
            )  # fmt: skip
        marker, colour, said = MARKS[end.by]
        ax.plot(end.t_s, place, marker=marker, color=colour, markersize=8, zorder=5)
        ax.annotate(
            f"{said}, {number(end.t_s)} s", (end.t_s, place), xytext=(9, 0),
            textcoords="offset points", va="center", fontsize=9.5, zorder=6,
            bbox={"facecolor": "white", "edgecolor": "none", "pad": 0.8},
        )  # fmt: skip
    ax.set_yticks(range(len(scenes)), reversed(scenes))
    ax.tick_params(axis="y", length=0)
    ax.set_ylim(-0.6, len(scenes) - 0.4)
    ax.set_xlim(-1, events.t_s.max() * 1.28)
    ax.set_xlabel("time since the question (s)")
    ax.set_title("Each ending has its own reason, and its name")
    if guess_s is not None:  # its words stand above the rows
        ax.set_ylim(top=len(scenes) + 0.1)
    mark_guess(ax, guess_s, at=0.99)
    clock_note(ax, note)
    return fig


def deadline(
    table: pd.DataFrame, guess_s: float | None = None, note: str = ""
) -> Figure:
    """How long each client waits for a server that never answers.

    table: from `deadlines.deadline`. A client without any limit gets an arrow.
    """
    rows = table
    if "skipped" in table:
        rows = table[table.skipped.isna()]
    rows = rows.iloc[::-1].reset_index(drop=True)
    fig, ax = figure(height_in=0.42 * len(rows) + 1.6)
    for place, row in rows.iterrows():
        fired = row.how_measured == "fired"
        if pd.isna(row.default_s):
            ax.barh(
                [place], [20_000], height=0.6, color="white", hatch="///",
                edgecolor=VERMILION, linewidth=0.8,
            )  # fmt: skip
            ax.text(20_000, place, " for ever", va="center", fontsize=9.5)
            continue
        waits_s = row.default_s * row.attempts
        look = {"color": BLUE} if fired else {"color": SKY, "hatch": "..."}
        ax.barh([place], [waits_s], height=0.6, edgecolor=BLUE, **look)
        said = f"{number(waits_s)} s"
        if row.attempts > 1:
            said += f" ({row.attempts:.0f} times {number(row.default_s)} s)"
        box = {"facecolor": "white", "edgecolor": "none", "pad": 0.5}
        ax.annotate(
            said, (waits_s, place), xytext=(4, 0), bbox=box, zorder=5,
            textcoords="offset points", va="center", fontsize=9.5,
        )  # fmt: skip
    ax.set_xscale("log")
    ax.set_xlim(1, 90_000)
    ax.set_xticks([1, 10, 60, 300, 1800], ["1 s", "10 s", "1 min", "5 min", "30 min"])
    ax.minorticks_off()
    ax.set_yticks(range(len(rows)), rows.client)
    ax.tick_params(axis="y", length=0)
    ax.set_xlabel("until it gives up by itself (each tenfold takes the same room)")
    ax.set_title("Left alone, hardly any client gives up in time for a person")
    mark_guess(ax, guess_s)
    told = "solid: fired, virtual clock; dotted: the library's default, as read from it"
    clock_note(ax, "; ".join(filter(None, [told, "hatched: it has none", note])))
    return fig


def abandon(
    table: pd.DataFrame, guess: float | None = None, note: str = "virtual clock"
) -> Figure:
    """What a reader saw, what was generated, and what was billed.

    table: from `waiting.abandon`. guess: the bill of who stops reading, in tokens.
    """
    fig, ax = figure(height_in=3.2)
    looks = {
        "seen": {"color": BLUE},
        "generated": {"color": SKY, "hatch": "///"},
        "billed": {"color": ORANGE, "hatch": "..."},
    }
    for shift, (column, look) in enumerate(looks.items()):
        places = [place + (shift - 1) * 0.27 for place in range(len(table))]
        bars = ax.bar(
            places, table[column], width=0.25, edgecolor="black", linewidth=0.8,
            label=column, **look,
        )  # fmt: skip
        bar_labels(ax, bars)
    ax.set_xticks(range(len(table)), table.client)
    ax.set_ylim(0, table[list(looks)].to_numpy().max() * 1.3)
    ax.yaxis.get_major_locator().set_params(integer=True)
    ax.set(xlabel="what the client does after three tokens", ylabel="tokens")
    ax.set_title("Only a closed stream stops the meter")
    ax.legend(loc="upper left", ncols=3)
    if guess is not None:  # its words stand beside the bars
        ax.set_xlim(-0.5, len(table) - 0.05)
    mark_guess(ax, guess, axis="y", at=0.995)
    clock_note(ax, note)
    return fig
