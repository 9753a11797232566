"""One look for every figure, and the helpers that give it.

    fig, ax = figure(height_in=2.4)
    ax.plot(frame.t_ms, frame.requests, color=BLUE, **LINES[0])
    ax.set(title="Requests come in waves", xlabel="time (s)", ylabel="requests")
    mark_guess(ax, guess("herd.last"), axis="x")
    clock_note(ax, "virtual clock; 100 clients, capacity 3, seed 0")
    return fig

The colours are those of Okabe and Ito, told apart by colour-blind eyes; in grey they
are not, so what differs in colour also differs in marker, line style or hatch.
"""

import io
import math
import re
import textwrap
from pathlib import Path

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from PIL import Image

# Okabe and Ito (2008), "Color universal design"
BLACK = "#000000"
ORANGE = "#E69F00"
SKY = "#56B4E9"
GREEN = "#009E73"
YELLOW = "#F0E442"
BLUE = "#0072B2"
VERMILION = "#D55E00"
PURPLE = "#CC79A7"
GREY = "#5A5A5A"  # for notes and guides: 7 to 1 against white
FAINT = "#D9D9D9"  # for grids

# The first three of anything: different in colour, in lightness and in form.
COLOURS = (BLUE, VERMILION, SKY)
LINES = (
    {"linestyle": "-", "marker": "o"},
    {"linestyle": "--", "marker": "s"},
    {"linestyle": ":", "marker": "^"},
)
HATCHES = ("", "///", "...")

WIDTH_IN = 7.2  # at 100 pixels an inch: 720, what a notebook's column holds
PIXELS_PER_INCH = 100
RETINA = 2

STYLE = {
    "font.family": "DejaVu Sans",  # comes with matplotlib: the same everywhere
    "font.size": 10,
    "axes.titlesize": 11.5,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.titlepad": 9,
    "axes.labelsize": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": False,
    "axes.axisbelow": True,
    "grid.color": FAINT,
    "grid.linewidth": 0.8,
    "xtick.labelsize": 9.5,
    "ytick.labelsize": 9.5,
    "legend.fontsize": 9.5,
    "legend.frameon": False,
    "lines.linewidth": 1.6,
    "lines.markersize": 6,
    "hatch.linewidth": 0.8,
    "figure.facecolor": "white",
    "savefig.facecolor": "white",
    "svg.hashsalt": "labkit",  # else ids in an SVG are new each time
    "svg.fonttype": "path",
}


class Picture(Figure):
    """A figure that shows itself in a notebook, the same bytes each time.

    It does not go through pyplot: nothing is shown twice, nothing has to be closed,
    and no cell depends on which backend is set.
    """

    def __repr__(self) -> str:
        """What is seen, for who reads the page without pictures: the titles."""
        titles = [ax.get_title(loc="left") or ax.get_title() for ax in self.axes]
        titles = [self.get_suptitle()] if self.get_suptitle() else titles
        said = "; ".join(" ".join(t.split()) for t in titles if t)
        return f"figure: {said or 'without a title'}"

    def settle(self) -> None:
        """Lay everything out, for good: else each drawing moves it by a pixel."""
        if self.get_layout_engine() is not None:
            self.draw_without_rendering()
            self.draw_without_rendering()  # the first pass knows no tick labels yet
            self.set_layout_engine("none")

    def png(self, scale: float = RETINA) -> bytes:
        """The picture, `scale` times its size on the page.

        In 64 colours: a chart needs no more, and a notebook is a third of the size.
        """
        self.settle()
        full, small = io.BytesIO(), io.BytesIO()
        dots = PIXELS_PER_INCH * scale
        self.savefig(full, format="png", dpi=dots, metadata={"Software": None})
        Image.open(full).convert("RGB").quantize(64).save(small, "PNG", optimize=True)
        return small.getvalue()

    def bundle(self) -> tuple[dict, dict]:
        """The picture as a notebook keeps it: its data by kind, and their size."""
        width, height = self.get_size_inches()
        size = {
            "width": round(width * PIXELS_PER_INCH),
            "height": round(height * PIXELS_PER_INCH),
        }
        data = {"text/plain": repr(self), "image/png": self.png()}
        return data, {"image/png": size}

    def _ipython_display_(self) -> None:
        from IPython.display import display

        data, metadata = self.bundle()
        display(data, metadata=metadata, raw=True)


def figure(rows: int = 1, cols: int = 1, *, height_in: float = 2.8, **subplots):
    """A new `(figure, axes)` in the house's style, as wide as the page.

    axes: one `Axes`, or an array of them for more rows or columns. `subplots` goes
    to matplotlib: sharex=True, height_ratios=[2, 1], gridspec_kw={...}.
    """
    mpl.rcParams.update(STYLE)
    fig = Picture(figsize=(WIDTH_IN, height_in), layout="constrained")
    fig.get_layout_engine().set(w_pad=0.08, h_pad=0.06, hspace=0.06, wspace=0.04)
    return fig, fig.subplots(rows, cols, **subplots)


def clock_note(ax: Axes, text: str) -> None:
    """Under the figure, small: the clock that was used, and every parameter.

    Once a figure; any of its axes will do.
    """
    fig = ax.figure
    width_pt = fig.bbox.width / fig.dpi * 72
    text = re.sub(r"(?<=\d) (?=m?s\b)", "\N{NO-BREAK SPACE}", text)  # 2 ms stays whole
    lines = textwrap.fill(text, int(width_pt / 4.8))  # 9 pt: under 4.8 pt a letter
    fig.supxlabel(lines, x=0.012, ha="left", fontsize=9, color=GREY)


def mark_guess(
    ax: Axes, value: float | None, *, axis: str = "x", label: str = "your guess",
    at: float = 0.97,
) -> None:  # fmt: skip
    """Draw a reader's prediction as a dash-dotted line. None: there was none.

    axis: the axis whose unit the guess has: "x" gives an upright line. Call it after
        the limits of that axis are set.
    at: where along the line the words stand, from 0 to 1.
    """
    if value is None:
        return
    dashes = (0, (6, 2, 1, 2))
    look = {"color": PURPLE, "linestyle": dashes, "linewidth": 1.8, "zorder": 4}
    box = {"facecolor": "white", "edgecolor": "none", "alpha": 0.85, "pad": 1.0}
    words = {"fontsize": 9.5, "style": "italic", "bbox": box, "zorder": 5}
    text = f"{label}: {number(value)}"
    if axis == "x":
        ax.axvline(value, **look)
        low, high = ax.get_xlim()
        left = value > (low + high) / 2  # words on the side that has the room
        ax.annotate(
            text, (value, at), xycoords=("data", "axes fraction"),
            xytext=(-4 if left else 4, 0), textcoords="offset points", va="top",
            ha="right" if left else "left", **words,
        )  # fmt: skip
    else:
        ax.axhline(value, **look)
        ax.annotate(
            text, (at, value), xycoords=("axes fraction", "data"),
            xytext=(0, 3), textcoords="offset points", ha="right", va="bottom", **words,
        )  # fmt: skip


def number(value: float) -> str:
    """A number for a label: thousands set apart, no digits that say nothing.

    >>> number(7100.0), number(65.60000001), number(0.25)
    ('7,100', '65.6', '0.25')
    """
    if value == 0 or not math.isfinite(value):
        return f"{value:g}"
    digits = max(0, 2 - math.floor(math.log10(abs(value))))
    text = f"{value:,.{digits}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def bar_labels(ax: Axes, bars, unit: str = "", pad: float = 3) -> None:
    """Write each bar's length at its end, and make room for it."""
    texts = [f"{number(value)}{' ' if unit else ''}{unit}" for value in bars.datavalues]
    box = {"facecolor": "white", "edgecolor": "none", "pad": 0.8}
    look = {"fontsize": 9.5, "bbox": box, "zorder": 6}  # above the line of a guess
    ax.bar_label(bars, labels=texts, padding=pad, **look)
    horizontal = bars.orientation == "horizontal"
    ax.margins(**{"x" if horizontal else "y": 0.16})


def save(fig: Figure, path: str | Path) -> None:
    """Write a PNG (retina) or an SVG, by the suffix: no date, no version inside."""
    path = Path(path)
    if path.suffix == ".png":
        dots, metadata = PIXELS_PER_INCH * RETINA, {"Software": None}
    elif path.suffix == ".svg":
        dots, metadata = 72, {"Date": None, "Creator": None}
    else:
        raise ValueError(f"path: {path.name!r} must end in .png or .svg")
    if isinstance(fig, Picture):
        fig.settle()
    with mpl.rc_context(STYLE):
        fig.savefig(path, dpi=dots, metadata=metadata)
