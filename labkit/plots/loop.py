"""The loop and its bill: prompts, caps, catalogues, caches (notebook 04).

What a turn costs is told twice, in tokens and in dollars. Hatched is what was paid
for before already, full is what the turn has brought.
"""

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from labkit.plots.style import (
    BLACK,
    BLUE,
    GREY,
    HATCHES,
    SKY,
    VERMILION,
    clock_note,
    figure,
    mark_guess,
)

AGAIN = {"facecolor": "white", "edgecolor": GREY, "hatch": HATCHES[1]}
NEW = {"facecolor": BLUE, "edgecolor": BLACK}
SOLID = {"frameon": True, "framealpha": 1, "edgecolor": "none"}  # over a guess
WHITE = {"facecolor": "white", "edgecolor": "none", "pad": 0.8}
TOP_LEFT = {"x": 0.012, "ha": "left", "fontsize": 11.5, "fontweight": "bold"}
# In words: two signs of the dollar in one text would be read as a formula.
RATES = "2 dollars a million tokens in, 12 out"


def usd(amount: float, digits: int = 3) -> str:
    """Dollars for a label.

    >>> usd(0.702198), usd(0.00247, 6)
    ('$0.702', '$0.002470')
    """
    return f"${amount:,.{digits}f}"


def prompts(
    turns: pd.DataFrame, guess: float | None = None, note: str = "virtual clock"
) -> Figure:
    """A bar a turn: what its prompt repeats, and what is new in it.

    turns: `turn` and `prompt_tokens`, as from `turn_by_turn.turns`. guess: of the last
    prompt.
    """
    fig, ax = figure(height_in=0.5 * len(turns) + 1.6)
    tokens = turns.prompt_tokens
    again = tokens.shift(fill_value=0)
    places = range(len(turns))
    ax.barh(places, again, height=0.6, label="sent before", **AGAIN)
    ax.barh(places, tokens - again, left=again, height=0.6, label="new", **NEW)
    for place, total in zip(places, tokens, strict=True):
        ax.annotate(
            f"{total:,}", (total, place), xytext=(5, 0), bbox=WHITE, zorder=6,
            textcoords="offset points", va="center", fontsize=9.5,
        )  # fmt: skip
    ax.set_yticks(places, [f"turn {turn}" for turn in turns.turn])
    ax.tick_params(axis="y", length=0)
    room = 0.6 if guess is None else 1.1  # the guess stands below the bars
    ax.set_ylim(len(turns) - 1 + room, -0.6)
    ax.set_xlim(0, max(tokens.max(), guess or 0) * 1.2)
    ax.set_xlabel("the prompt (tokens)")
    said = f"{again.sum():,} of {tokens.sum():,} prompt tokens"
    ax.set_title(f"{said} had been sent before")
    fig.legend(loc="outside right center")
    mark_guess(ax, guess, at=0.12)
    clock_note(ax, note)
    return fig


def turn_cap(
    turns: pd.DataFrame, caps: pd.DataFrame, guess_usd: float | None = None,
    note: str = "virtual clock",
) -> Figure:  # fmt: skip
    """The triangle of prompts, and the parabola that it adds up to.

    turns: of a run to the highest cap, from `turn_by_turn.turns`. caps: from
    `loop_tables.turn_cap`. guess_usd: of the bill under the highest cap.
    """
    fig, (triangle, parabola) = figure(1, 2, height_in=3.9)
    _triangle(triangle, turns)
    _parabola(parabola, turns, caps)
    mark_guess(parabola, guess_usd, axis="y", label="your guess ($)", at=0.99)
    fig.suptitle(
        "Each prompt holds all before it, so the bill grows with the square", **TOP_LEFT
    )
    clock_note(triangle, note)
    return fig


def _triangle(ax: Axes, turns: pd.DataFrame) -> None:
    first, last = turns.prompt_tokens.iloc[0], turns.prompt_tokens.iloc[-1]
    ax.bar(turns.turn, [first] * len(turns), color=BLUE, width=1.0)
    rest = turns.prompt_tokens - first
    ax.bar(turns.turn, rest, bottom=first, color=SKY, width=1.0)
    ax.step(turns.turn, turns.prompt_tokens, where="mid", color=BLACK, linewidth=1.2)
    ax.annotate(
        f"{last:,}", (turns.turn.iloc[-1], last), xytext=(-6, 2),
        textcoords="offset points", ha="right", va="bottom", fontsize=9.5,
    )  # fmt: skip
    ax.annotate(
        "the turns before,\nsent again", (0.7, 0.36), xycoords="axes fraction",
        ha="center", va="center", fontsize=9.5,
    )  # fmt: skip
    ax.annotate(
        f"in dark: question and tools, {first}", (0.98, first), ha="right",
        xycoords=("axes fraction", "data"), xytext=(0, 2), fontsize=9.5,
        textcoords="offset points", va="bottom",
    )  # fmt: skip
    ax.set_xlim(0.5, len(turns) + 0.5)
    ax.set_ylim(0, last * 1.12)
    ax.set(xlabel="turn", ylabel="its prompt (tokens)")
    said = f"area: {turns.prompt_tokens.sum():,} tokens"
    ax.set_title(said, fontsize=10, fontweight="normal")


def _parabola(ax: Axes, turns: pd.DataFrame, caps: pd.DataFrame) -> None:
    ax.plot(turns.turn, turns.spent_usd, color=BLUE, label="the bill")
    # The second cap: of this one the reader has been told the bill.
    cap, cost_usd = caps[["cap", "cost_usd"]].iloc[:2].iloc[-1]
    end = turns.turn.iloc[-1]
    ax.plot(
        [0, end], [0, end * cost_usd / cap], color=VERMILION, linestyle="--",
        label=f"had all cost what the first {cap:g} did",
    )  # fmt: skip
    ax.plot(caps.cap, caps.cost_usd, "o", color=BLACK)
    for row in caps[-2:].itertuples():  # the others lie too near to each other
        ax.annotate(
            f"{row.cap} turns: {usd(row.cost_usd)}", (row.cap, row.cost_usd),
            xytext=(-8, 4), textcoords="offset points", ha="right", va="bottom",
            fontsize=9.5,
        )  # fmt: skip
    ax.set_xlim(0, end * 1.04)
    ax.set_ylim(0, turns.spent_usd.iloc[-1] * 1.42)
    ax.set(xlabel="cap on turns", ylabel="the run's bill ($)")
    ax.set_title("what was paid up to each turn", fontsize=10, fontweight="normal")
    ax.legend(loc="upper left")


def catalogue(
    table: pd.DataFrame, guess: float | None = None, note: str = "virtual clock"
) -> Figure:
    """The same turns, with larger catalogues and longer histories.

    table: from `loop_tables.catalogue`. guess: how many times as dear the last is.
    """
    fig, ax = figure(height_in=0.4 * len(table) + 1.7)
    looks = ({"color": BLUE}, {"color": SKY, "hatch": HATCHES[1]})
    seen = set()
    for place, row in enumerate(table.itertuples()):
        kind = int(row.history > 0)
        said = f"{row.history} messages before" if kind else "nothing before"
        ax.barh(
            [place], [row.times], height=0.66, edgecolor=BLACK, linewidth=0.8,
            label=None if said in seen else said, **looks[kind],
        )  # fmt: skip
        seen.add(said)
        ax.annotate(
            f"{row.times:.1f} times: {usd(row.cost_usd)}", (row.times, place),
            xytext=(5, 0), textcoords="offset points", va="center", fontsize=9.5,
            bbox=WHITE, zorder=6,
        )  # fmt: skip
    ax.set_yticks(range(len(table)), [f"{n} tools" for n in table.tools])
    ax.tick_params(axis="y", length=0)
    ax.set_ylim(len(table) - 0.3 + (guess is not None) * 0.6, -0.7)
    ax.set_xlim(0, max(table.times.max() * 1.32, (guess or 0) * 1.06))
    turns = int(table.turns.iloc[0])
    first = usd(table.cost_usd.iloc[0])
    ax.set_xlabel(f"the bill of {turns} turns (times {first})")
    most = f"up to {table.times.max():.0f} times the bill"
    ax.set_title(f"The same cap of {turns} turns, and {most}")
    ax.legend(loc="upper right", **SOLID)
    mark_guess(ax, guess, at=0.1)
    clock_note(ax, note)
    return fig


def caching(
    table: pd.DataFrame, guess_usd: float | None = None, note: str = "virtual clock"
) -> Figure:
    """The bill with and without a prompt cache.

    table: from `loop_tables.caching`. guess_usd: of the highest cap, cached.
    """
    fig, ax = figure(height_in=3.3)
    for column, said, look in (
        ("cost_usd", "full price", {"color": BLUE, "marker": "o", "linestyle": "-"}),
        ("cached_cost_usd", "what was sent before, at a tenth",
         {"color": VERMILION, "marker": "s", "linestyle": "--"}),
    ):  # fmt: skip
        ax.plot(table.cap, table[column], label=said, **look)
        end = table.iloc[-1]
        ax.annotate(
            usd(end[column]), (end.cap, end[column]), xytext=(7, 0),
            textcoords="offset points", va="center", fontsize=9.5,
        )  # fmt: skip
    ax.set_xticks(table.cap)
    ax.set_xlim(0, table.cap.max() * 1.1)
    ax.set_ylim(0, table.cost_usd.max() * 1.12)
    ax.set(xlabel="cap on turns", ylabel="the run's bill ($)")
    saved = table.saved_percent
    ax.set_title(
        f"A cache saves {saved.iloc[0]:.0f} % of {table.cap.iloc[0]} turns, "
        f"{saved.iloc[-1]:.0f} % of {table.cap.iloc[-1]}"
    )
    ax.legend(loc="upper left")
    mark_guess(ax, guess_usd, axis="y", label="your guess ($)", at=0.99)
    clock_note(ax, note)
    return fig
