"""The herd: who asked when, and how long it went on (chapter 14, jitter)."""

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, NullLocator

from labkit.experiments.waves import arrivals
from labkit.plots.style import (
    BLUE,
    GREY,
    VERMILION,
    clock_note,
    figure,
    mark_guess,
)

CAPACITY = 3
# Even at the very beginning, then by doublings: so the waves stand evenly apart.
SYMLOG = {"value": "symlog", "linthresh": 0.1, "linscale": 0.35, "base": 10}
TICKS_S = (0, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100, 200, 500)
TITLES = (
    "Without jitter: stripes. The whole herd returns at once",
    "Full jitter: dust. The same clients, each at its own time",
)
PLAIN = FuncFormatter(lambda value, _: f"{value:g}")

# Told apart by form, in grey too: a ring was refused, a full dot was answered.
RING = {
    "linestyle": "none", "marker": "o", "markersize": 3.2, "markerfacecolor": "none",
    "markeredgecolor": VERMILION, "markeredgewidth": 0.7,
}  # fmt: skip
DOT = {
    "linestyle": "none", "marker": "o", "markersize": 3.8, "color": BLUE,
    "markeredgewidth": 0,
}  # fmt: skip


def herd(
    naive: pd.DataFrame,
    jitter: pd.DataFrame,
    *,
    until_s: float | None = None,
    window_s: float = 0.05,
    capacity: int = CAPACITY,
    guess_s: float | None = None,
    note: str = "virtual clock",
) -> Figure:
    """Every request of two herds on one time axis, and the arrivals under each.

    naive, jitter: from `experiments.herd.herd`. until_s: draw this much of the time,
    evenly; None: all of it, on an axis where from 0.1 s on each doubling takes the
    same room.
    guess_s: of the last answer without jitter.
    """
    fig, axes = figure(4, height_in=6.6, sharex=True, height_ratios=[3, 1, 3, 1])
    for rows, title, dots, bars in (
        (naive, TITLES[0], *axes[:2]),
        (jitter, TITLES[1], *axes[2:]),
    ):
        dots.set_title(title)
        client_dots(dots, rows)
        say_total(dots, rows)
        arrival_bars(bars, rows, window_s, capacity)
    axes[2].legend(loc="upper right", markerscale=1.8, bbox_to_anchor=(1, 0.75))
    mark_guess(axes[0], guess_s, at=0.36)
    time_axis(axes[3], max(naive.answered_s.max(), jitter.answered_s.max()), until_s)
    clock_note(axes[3], note)
    return fig


def one(
    rows: pd.DataFrame, title: str, *, until_s: float | None, window_s: float = 0.05,
    capacity: int = CAPACITY, note: str = "virtual clock",
) -> Figure:  # fmt: skip
    """Every request of one herd, and the arrivals under it. until_s: as in `herd`."""
    fig, (dots, bars) = figure(2, height_in=4.0, sharex=True, height_ratios=[3, 1])
    dots.set_title(title)
    client_dots(dots, rows)
    say_total(dots, rows)
    dots.legend(loc="lower right", markerscale=1.8, bbox_to_anchor=(1, 0.2))
    arrival_bars(bars, rows, window_s, capacity)
    time_axis(bars, rows.answered_s.max(), until_s)
    clock_note(bars, note)
    return fig


def client_dots(ax: Axes, rows: pd.DataFrame) -> None:
    """One row a client, who was answered first at the bottom; one mark a request."""
    order = rows.groupby("client").answered_s.max().rank(method="first")
    height = rows.client.map(order)
    refused = rows.status == 429
    ax.plot(rows.t_s[refused], height[refused], label="429: refused", **RING)
    ax.plot(rows.t_s[~refused], height[~refused], label="200: answered", **DOT)
    ax.set_ylabel("clients, in order\nof their answers")
    ax.set_ylim(0, len(order) + 1)


def say_total(ax: Axes, rows: pd.DataFrame) -> None:
    """What it came to, in the corner that stays empty."""
    clients, wall_s = rows.client.nunique(), rows.answered_s.max()
    said = f"{len(rows)} requests; all {clients}\nanswered after {wall_s:.1f} s"
    ax.text(0.995, 0.06, said, transform=ax.transAxes, ha="right", fontsize=10)


def arrival_bars(
    ax: Axes, rows: pd.DataFrame, window_s: float, capacity: int = CAPACITY
) -> None:
    """Requests in each window, as thin bars, and a line at what can be served."""
    counted = arrivals(rows, window_s)
    middle_s = (counted.from_s + window_s / 2).where(counted.from_s > 0, 0.0)
    ax.vlines(middle_s, 0.7, counted.requests, color=GREY, linewidth=1.8)
    ax.axhline(capacity, color=BLUE, linestyle="--", linewidth=1.2)
    ax.annotate(  # beside the axes: within them it would hide the last bars
        f"capacity {capacity}", (1, capacity), xycoords=("axes fraction", "data"),
        xytext=(3, 0), textcoords="offset points", va="center", color=BLUE, fontsize=9,
    )  # fmt: skip
    # Counted by factors: with 100 at the top, 3 would lie on the bottom line.
    ax.set_yscale("log")
    ax.set_ylim(0.7, 150)
    ax.set_yticks([1, 10, 100])
    ax.yaxis.set_major_formatter(PLAIN)
    ax.yaxis.set_minor_locator(NullLocator())
    ax.set_ylabel(f"requests\nin {window_s * 1000:g} ms")


def time_axis(ax: Axes, end_s: float, until_s: float | None = None) -> None:
    """Seconds since the herd asked: evenly spaced, or by doublings from 0.1 s on."""
    if until_s is not None:
        ax.set_xlim(-0.015 * until_s, until_s)
        ax.set_xlabel("time since all of them asked (s)")
        return
    ax.set_xscale(**SYMLOG)
    ax.set_xlim(-0.012, end_s * 1.3)
    ax.set_xticks([tick for tick in TICKS_S if tick <= end_s * 1.2])
    ax.xaxis.set_major_formatter(PLAIN)
    ax.xaxis.set_minor_locator(NullLocator())
    said = "from 0.1 s on, each doubling takes the same room"
    ax.set_xlabel(f"time since all of them asked (s); {said}")
