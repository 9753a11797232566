"""What survives: runs that were killed and taken up again, and a Stop (chapter 23)."""

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch, Rectangle

from labkit.plots.style import (
    BLACK,
    BLUE,
    FAINT,
    GREY,
    ORANGE,
    SKY,
    VERMILION,
    clock_note,
    figure,
    mark_guess,
    number,
)

LANES = ("disk", "person", "tools", "model")  # from below
TURN = {"facecolor": ORANGE, "edgecolor": BLACK, "hatch": "////", "linewidth": 1}
WRITE = {"facecolor": BLUE, "edgecolor": BLACK, "linewidth": 1}
READ = {"facecolor": SKY, "edgecolor": BLACK, "linewidth": 1}
AGAIN = {"edgecolor": VERMILION, "linestyle": (0, (3, 2)), "linewidth": 2.2}


def lives(events: pd.DataFrame, note: str) -> Figure:
    """A run and its second life in lanes, a panel for each way to go on.

    events: from `experiments.lives`.
    """
    ways = list(dict.fromkeys(events.resume))
    fig, axes = figure(
        len(ways), height_in=1.8 * len(ways) + 1.1, sharex=True, squeeze=False
    )
    last = events.order.max() + 1.7
    for ax, way in zip(axes[:, 0], ways, strict=True):
        ax.hlines(range(len(LANES)), -0.6, last, color=FAINT, zorder=0)
        _life(ax, events[events.resume == way])
    axes[-1, 0].set_xlim(-0.7, last + 0.2)
    axes[-1, 0].set_xlabel("events, in their order (not in their time)")
    fig.legend(handles=_legend(events), loc="outside upper center", ncols=4)
    clock_note(axes[-1, 0], note)
    return fig


def _legend(events: pd.DataFrame) -> list[Patch]:
    looks = {"a turn, billed": TURN, "a write": WRITE, "a read": READ}
    if "delete_file" not in set(events.event):
        del looks["a write"]
    if events.again.any():
        looks["the same again"] = AGAIN | {"facecolor": "white"}
    return [Patch(label=label, **look) for label, look in looks.items()]


def _life(ax: Axes, own: pd.DataFrame) -> None:
    saves, before = 0, None
    for row in own.itertuples():
        x, y = row.order + (row.process - 1), LANES.index(row.lane)
        if row.lane in ("model", "tools"):
            _box(ax, x, y, row)
        elif row.lane == "person":
            ax.plot(x, y, marker="D", color=BLACK, markersize=8)
            _words(ax, f"“{row.event}”", x, y, (8, 0), ha="left", va="center")
        else:
            ax.plot(x, y, marker="s", color=GREY, markersize=6)
            drop = -7 if saves % 2 == 0 else -19  # two rows: they would overlap
            if (row.process, row.event) != before:  # else it says so already
                _words(ax, row.event, x, y, (0, drop), va="top", color=GREY)
                saves += 1
            before = row.process, row.event
    killed_at = (own.process == 1).sum()  # the second process comes one place later
    ax.axvline(killed_at, color=VERMILION, linewidth=2.5)
    box = {"facecolor": "white", "edgecolor": VERMILION, "pad": 1.5}
    ax.annotate(
        "killed", (killed_at, 1.5), ha="center", va="center", fontsize=9.5,
        color=VERMILION, fontweight="bold", rotation=90, bbox=box,
    )  # fmt: skip
    ax.set_yticks(range(len(LANES)), LANES)
    ax.set_ylim(-1.4, len(LANES) - 0.2)
    ax.tick_params(axis="both", length=0)
    ax.set_xticks([])
    ax.spines[["left", "bottom"]].set_visible(False)
    ax.set_title(_title(own))


def _box(ax: Axes, x: float, y: float, row) -> None:
    if row.lane == "model":
        look, said = TURN, row.event
    else:
        look = WRITE if row.event == "delete_file" else READ
        said = row.event.partition("_")[0]
    if row.again:
        look = look | AGAIN | {"facecolor": "white"}
    ax.add_patch(Rectangle((x - 0.36, y - 0.26), 0.72, 0.52, zorder=3, **look))
    weight = {"color": VERMILION, "fontweight": "bold"} if row.again else {}
    _words(ax, said, x, y + 0.26, (0, 2), va="bottom", **weight)


def _words(ax: Axes, text: str, x: float, y: float, shift, ha="center", **look) -> None:
    ax.annotate(
        text, (x, y), xytext=shift, textcoords="offset points", ha=ha, fontsize=9,
        zorder=5, **look,
    )  # fmt: skip


def _title(own: pd.DataFrame) -> str:
    """How it goes on, and what it came to over both processes."""
    paid = int((own.lane == "model").sum())
    deleted = int((own.event == "delete_file").sum())
    way = own.resume.iloc[0]
    how = f"asks {way}" if way == "pending()" else way
    said = f"The second process {how}: {paid} turns paid"
    if deleted:
        said += f", {deleted} deletion{'s' if deleted != 1 else ''}"
    return said


def stop(
    table: pd.DataFrame, stop_ms: float, guess_ms: float | None = None,
    note: str = "virtual clock",
) -> Figure:  # fmt: skip
    """How long a run goes on after Stop, by how far the signal reaches.

    table: from `experiments.people.cancel`. guess_ms: of the last row.
    """
    fig, ax = figure(height_in=3.1)
    for place, row in enumerate(table.itertuples()):
        stopped = bool(row.reason_given)
        until_ms = min(row.wall_ms, stop_ms) if stopped else row.wall_ms
        ax.barh([place], [until_ms], height=0.5, color=SKY, edgecolor=BLUE)
        ax.barh(
            [place], [row.wall_ms - until_ms], left=until_ms, height=0.5,
            color="white", edgecolor=VERMILION, hatch="///",
        )  # fmt: skip
        ax.annotate(
            f"{row.status}, {number(row.wall_ms)} ms", (row.wall_ms, place),
            xytext=(6, 0), textcoords="offset points", va="center", fontsize=9.5,
            bbox={"facecolor": "white", "edgecolor": "none", "pad": 0.8}, zorder=6,
        )  # fmt: skip
    ax.axvline(stop_ms, color=BLACK, linewidth=1.6, linestyle="--")
    ax.annotate(
        "Stop", (stop_ms, -0.62), xytext=(-5, 0), textcoords="offset points",
        ha="right", va="center", fontweight="bold", fontsize=9.5,
    )  # fmt: skip
    names = [case.replace(" reaches only", "\nreaches only") for case in table.case]
    ax.set_yticks(range(len(table)), names)
    ax.tick_params(axis="y", length=0)
    ax.set_ylim(len(table) - 0.4 + 0.5 * (guess_ms is not None), -0.85)
    ax.set_xlim(0, table.wall_ms.max() * 1.42)
    ax.set_xlabel("time since the run began (ms); hatched: after Stop")
    ax.set_title("A Stop is as quick as the last one whom it reaches")
    mark_guess(ax, guess_ms, at=0.09)
    clock_note(ax, note)
    return fig
