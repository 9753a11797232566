"""A class's guesses: for each question a strip of dots, and what was measured."""

from collections import Counter
from statistics import median

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, NullLocator

from labkit.errors import shorten
from labkit.plots.style import BLUE, VERMILION, clock_note, figure
from labkit.shown import with_unit

FAR = 30  # from this factor between the smallest and the largest on: logarithmic
PLACES = 70  # along a strip; what falls into one place is stacked
STRIP_IN, MARGIN_IN = 0.82, 0.7


def board(table: pd.DataFrame, note: str) -> Figure:
    """A strip for each question, in the order of the rows. No dot has a name.

    table: a row a guess, with the columns question, guess and measured (NaN: unknown).
    """
    questions = list(dict.fromkeys(table.question))
    height_in = STRIP_IN * len(questions) + MARGIN_IN
    fig, axes = figure(len(questions), height_in=height_in, squeeze=False)
    for ax, question in zip(axes[:, 0], questions, strict=True):
        _strip(ax, question, table[table.question == question])
    clock_note(axes[-1, 0], note)
    return fig


def _strip(ax: Axes, question: str, own: pd.DataFrame) -> None:
    guesses = [float(each) for each in own.guess]
    known = [float(each) for each in own.measured.dropna()]
    was = median(known) if known else None  # real time differs from one to the next
    _scale(ax, guesses + known)
    places = Counter()
    for value in sorted(guesses):
        across = ax.transAxes.inverted().transform(ax.transData.transform((value, 0)))
        places[round(across[0] * PLACES)] += 1
        ax.plot(
            value, places[round(across[0] * PLACES)], marker="o", color=BLUE,
            markersize=5, markeredgecolor="white", markeredgewidth=0.5,
        )  # fmt: skip
    if was is not None:
        ax.axvline(was, color=VERMILION, linewidth=2.4, zorder=0.5)
    ax.set_ylim(0, max(5, *places.values()) + 1)
    ax.set_yticks([])
    ax.spines["left"].set_visible(False)
    ax.xaxis.set_major_formatter(FuncFormatter(lambda v, _: with_unit(question, v)))
    ax.set_title(_said(question, guesses, was), fontsize=9.5, pad=4)


def _scale(ax: Axes, values: list[float]) -> None:
    """Limits that hold all of them, with a little room."""
    least, most = min(values), max(values)
    if least > 0 and most > FAR * least:
        ax.set_xscale("log")
        ax.xaxis.set_minor_locator(NullLocator())
        ax.set_xlim(least / 1.5, most * 1.5)
        return
    room = 0.05 * (most - least) or 0.1 * abs(most) or 1.0
    ax.set_xlim(least - room, most + room)


def _said(question: str, guesses: list[float], was: float | None) -> str:
    number, middle = len(guesses), with_unit(question, median(guesses))
    many = f"{number} guesses, median {middle}" if number > 1 else f"a guess, {middle}"
    known = "not measured" if was is None else f"measured {with_unit(question, was)}"
    said = f"{shorten(question, 40)}: {known}; {many}"
    return said.replace("$", r"\$")  # two of them would be read as a formula
