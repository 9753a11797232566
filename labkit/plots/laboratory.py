"""Backoff in the laboratory: the five strategies against the crowd (notebook 02)."""

import math

import pandas as pd
from matplotlib.figure import Figure

from labkit.plots.style import (
    BLUE,
    GREY,
    ORANGE,
    SKY,
    VERMILION,
    clock_note,
    figure,
    mark_guess,
)

FORMS = {
    "none": {"color": GREY, "marker": "x", "linestyle": ":"},
    "exponential": {"color": VERMILION, "marker": "s", "linestyle": "--"},
    "full": {"color": BLUE, "marker": "o", "linestyle": "-"},
    "equal": {"color": SKY, "marker": "^", "linestyle": "-."},
    "decorrelated": {
        "color": ORANGE, "marker": "D", "linestyle": (0, (4, 1, 1, 1, 1, 1)),
    },
}  # fmt: skip


def contention(
    table: pd.DataFrame, guess_calls: float | None = None, note: str = "simulated"
) -> Figure:
    """Calls and completion of each strategy against the number of writers.

    table: from `contention.contention`. guess_calls: for the most writers.
    """
    fig, axes = figure(1, 2, height_in=3.5)
    for ax, column, label in (
        (axes[0], "calls", "writes tried, all writers"),
        (axes[1], "completion_ms", "until all have written (ms)"),
    ):
        for strategy, own in table.groupby("strategy", sort=False):
            ax.plot(own.writers, own[column], label=strategy, **FORMS[strategy])
        ax.set_yscale("log")
        ax.set_xlabel("writers that contend for one row")
        ax.set_ylabel(label)
        ax.set_xticks(sorted(table.writers.unique()))
        bottom = 10 ** math.floor(math.log10(table[column].min()))
        ax.set_ylim(bottom=bottom)
        ax.grid(axis="y")
    most = table[table.writers == table.writers.max()].set_index("strategy")
    axes[0].set_title(f"Fewest writes: {most.calls.idxmin()}")
    axes[1].set_title(f"Soonest done: {most.completion_ms.idxmin()}")
    axes[0].legend(loc="lower right")
    mark_guess(axes[0], guess_calls, axis="y", at=0.99)
    clock_note(axes[0], note)
    return fig
