"""Pictures of one answer on its way: notebooks 00 and 01."""

import pandas as pd

from labkit.plots.style import (
    BLACK,
    BLUE,
    GREY,
    HATCHES,
    SKY,
    VERMILION,
    Picture,
    clock_note,
    figure,
    mark_guess,
)

# How an answer ended -> the mark, and the words beside it. Filled, hollow, crossed:
# three forms, so that no colour is needed to tell them apart.
NOTHING = "no finish_reason"
RING = {"marker": "o", "markersize": 13, "markeredgewidth": 2.2}
ENDS = {
    "stop": (RING | {"color": BLACK}, "finish_reason: stop"),
    "length": (RING | {"color": BLACK}, "finish_reason: length"),
    "IncompleteStream": (RING | {"color": BLACK, "markerfacecolor": "white"}, NOTHING),
    "BrokenStream": (
        {"marker": "X", "markersize": 13, "color": VERMILION, "markeredgecolor": BLACK},
        "connection reset",
    ),
}


def lanes(
    arrivals: dict[str, pd.DataFrame], title: str, note: str, guess: float | None = None
) -> Picture:
    """One lane an answer: an upright tick for each piece, its word, its end mark.

    arrivals: a name for the lane -> `labkit.experiments.streaming.arrivals(...)`.
    guess: of the time of the last piece, in ms.
    """
    fig, ax = figure(height_in=1.4 + 0.72 * len(arrivals))
    for lane, frame in enumerate(arrivals.values()):
        _draw_lane(ax, -lane, frame)
    last_ms = max([frame.t_ms.max() for frame in arrivals.values()] + [guess or 0])
    ax.set_xlim(0, last_ms * 1.02)
    room = 0.42 if guess is None else 0.8  # its words stand above the lanes
    ax.set_ylim(0.5 - len(arrivals), room)
    mark_guess(ax, guess, label="your guess of the last word")
    ax.set_yticks([-lane for lane in range(len(arrivals))], list(arrivals))
    ax.tick_params(axis="y", length=0)
    ax.spines["left"].set_visible(False)
    ax.set(title=title, xlabel="time since the question (ms)")
    clock_note(ax, note)
    return fig


def _draw_lane(ax, y: float, frame: pd.DataFrame) -> None:
    pieces, end = frame.iloc[:-1], frame.iloc[-1]
    ax.hlines(y, 0, end.t_ms, color=GREY, linewidth=1)
    ax.vlines(pieces.t_ms, y - 0.17, y + 0.17, color=BLUE, linewidth=3)
    for n, piece in enumerate(pieces.itertuples()):
        # Turn about, above and below: long words would run into each other.
        up = n % 2 == 0
        ax.annotate(
            piece.text.strip(), (piece.t_ms, y + (0.19 if up else -0.19)),
            xytext=(0, 1 if up else -1), textcoords="offset points",
            ha="center", va="bottom" if up else "top", fontsize=9, zorder=6,
            bbox={"facecolor": "white", "edgecolor": "none", "pad": 0.6},
        )  # fmt: skip
    mark, words = ENDS[end.ended]
    ax.plot(end.t_ms, y, linestyle="none", clip_on=False, zorder=5, **mark)
    ax.annotate(
        words, (end.t_ms, y), xytext=(13, 0), textcoords="offset points",
        va="center", annotation_clip=False,
    )  # fmt: skip


def ttft_bars(frame: pd.DataFrame, note: str, guess: float | None = None) -> Picture:
    """Waiting and reading, a bar for each way to ask.

    frame: as from `labkit.experiments.streaming.ttft`. guess: of the first word with
    streaming, in ms.
    """
    fig, ax = figure(height_in=2.9)
    modes, first = frame["mode"], frame.first_visible_ms
    rest = frame.complete_ms - first
    wait = {"color": "white", "edgecolor": GREY, "hatch": HATCHES[1]}
    ax.barh(modes, first, height=0.55, label="nothing to read", **wait)
    read = {"color": SKY, "edgecolor": GREY}
    ax.barh(modes, rest, left=first, height=0.55, label="words arrive", **read)
    for y, row in enumerate(frame.itertuples()):
        ax.plot(
            row.first_visible_ms, y, marker="v", color=BLACK, markersize=9,
            linestyle="none", label="first word" if y == 0 else None,
        )  # fmt: skip
        first_ms, last_ms = row.first_visible_ms, row.complete_ms
        ax.annotate(
            f"first word {first_ms:,.0f} ms, last {last_ms:,.0f} ms",
            (0, y - 0.3), xytext=(3, 3), textcoords="offset points", va="bottom",
            zorder=6, bbox={"facecolor": "white", "edgecolor": "none", "pad": 0.8},
        )  # fmt: skip
    sooner = first.iloc[0] / first.iloc[1]
    title = f"The first word {sooner:.0f} times sooner, the last one no sooner"
    ax.set(title=title, xlabel="time since the question (ms)")
    ax.set_ylim(1.75, -0.6)  # the first mode on top, room for the guess below
    ax.set_xlim(0, frame.complete_ms.max() * 1.02)
    ax.tick_params(axis="y", length=0)
    mark_guess(ax, guess, at=0.1)
    fig.legend(loc="outside right center")
    clock_note(ax, note)
    return fig


BODIES = {
    "lf": "lines end in LF",
    "crlf": "lines end in CRLF",
    "several data lines": "JSON on several lines",
}


def reader_bars(frame: pd.DataFrame, note: str, guess: float | None = None) -> Picture:
    """How often each reader fails, a panel for each kind of body.

    frame: as from `labkit.experiments.readers.reader`. guess: of the share of runs that
    fail without streaming decode, in %, for the first body.
    """
    bodies, readers = frame["body"].unique(), frame["reader"].unique()
    fig, axes = figure(1, len(bodies), height_in=3.2, sharey=True, squeeze=False)
    axes = axes[0]
    for ax, body in zip(axes, bodies, strict=True):
        share = frame[frame["body"] == body].set_index("reader").loc[readers]
        raised, wrong = 100 * share["raised"], 100 * share["wrong"]
        loud = {"color": SKY, "label": "raised an error"}
        quiet = {"color": VERMILION, "hatch": HATCHES[1]}
        quiet["label"] = "wrong text, in silence"
        bar = {"height": 0.6, "edgecolor": BLACK}
        ax.barh(readers, raised, **bar, **loud)
        ax.barh(readers, wrong, left=raised, **bar, **quiet)
        for y, failed in enumerate(raised + wrong):
            _label_share(ax, y, failed)
        title = BODIES.get(body, body)
        ax.set_title(title, fontsize=10, fontweight="normal")
        ax.set(xlim=(0, 100), xlabel="runs that failed (%)")
        ax.tick_params(axis="y", length=0)
    axes[0].set_ylim(len(readers) - 0.3, -0.6)  # the first on top, room for the guess
    mark_guess(axes[0], guess, at=0.1)
    handles, labels = axes[0].get_legend_handles_labels()
    fig.legend(handles, labels, loc="upper right", ncols=2, borderaxespad=0.2)
    fig.suptitle(
        "One missing detail is loud, one is silent",
        x=0.012, ha="left", fontsize=11.5, fontweight="bold",
    )  # fmt: skip
    clock_note(axes[0], note)
    return fig


def _label_share(ax, y: float, share: float) -> None:
    """The number at the end of a bar: inside it where there is room."""
    inside = share > 60
    ax.annotate(
        f"{share:.0f} %" if share == round(share) else f"{share:.1f} %",
        (share, y), xytext=(-5 if inside else 5, 0), textcoords="offset points",
        ha="right" if inside else "left", va="center", fontsize=9.5, zorder=6,
        bbox={"facecolor": "white", "edgecolor": "none", "pad": 1.2},
    )  # fmt: skip
