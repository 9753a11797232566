"""What was spent, against the budget (notebook 04)."""

import pandas as pd
from matplotlib.figure import Figure

from labkit.plots.loop import usd
from labkit.plots.style import (
    BLACK,
    BLUE,
    HATCHES,
    SKY,
    VERMILION,
    clock_note,
    figure,
    mark_guess,
)


def budget(
    budgets: pd.DataFrame, turns: pd.DataFrame, note: str = "virtual clock"
) -> Figure:
    """A bar a budget, cut into turns; what stands beyond the line was overspent.

    budgets: from `loop_tables.budget`. turns: of the same model, at least as many.
    """
    fig, ax = figure(height_in=3.0)
    for place, row in enumerate(budgets.itertuples()):
        shares = 100 * turns.turn_usd[: row.turns] / row.budget_usd
        left = shares.cumsum() - shares
        looks = [SKY] * (row.turns - 1) + ["white"]
        bars = ax.barh(
            [place] * row.turns, shares, left=left, height=0.55, color=looks,
            edgecolor=BLACK, linewidth=0.7,
        )  # fmt: skip
        bars[-1].set_hatch(HATCHES[1])
        bars[-1].set_edgecolor(VERMILION)
        over = f"{row.turns} turns, {usd(row.cost_usd, 6)}"
        ax.annotate(
            f"{over}: {shares.sum() - 100:.1f} % over", (shares.sum(), place),
            xytext=(6, 0), textcoords="offset points", va="center", fontsize=9.5,
        )  # fmt: skip
    ax.axvline(100, color=BLACK, linewidth=1.8, zorder=5)
    labels = [f"budget\n{usd(each)}" for each in budgets.budget_usd]
    ax.set_yticks(range(len(budgets)), labels)
    ax.tick_params(axis="y", length=0)
    ax.set_ylim(len(budgets) - 0.4, -0.6)
    ax.set_xlim(0, 168)
    ax.set_xticks(range(0, 101, 25))
    ax.set_xlabel("spent (% of the budget); each box is a turn, the last one hatched")
    ax.set_title("Every budget is overspent, by less than one turn")
    clock_note(ax, note)
    return fig


def overshoot(
    sweep: pd.DataFrame, guess_usd: float | None = None, note: str = "virtual clock"
) -> Figure:
    """What was spent, against the budget: never below, never a whole turn above.

    sweep: from `loop_tables.budget`, with many budgets.
    """
    fig, ax = figure(height_in=3.4)
    ax.plot(
        sweep.budget_usd, sweep.cost_usd, "o", color=BLUE, markersize=4.5,
        label="spent: one run a dot",
    )  # fmt: skip
    ax.plot(
        sweep.budget_usd, sweep.budget_usd, color=BLACK, linewidth=1.4,
        label="the budget itself",
    )  # fmt: skip
    ax.plot(
        sweep.budget_usd, sweep.budget_usd + sweep.last_turn_usd, color=VERMILION,
        linestyle="--", linewidth=1.2, label="the budget, and one more turn",
    )  # fmt: skip
    ax.set(xlabel="budget ($)", ylabel="spent ($)")
    ax.set_xlim(0, sweep.budget_usd.max() * 1.03)
    ax.set_ylim(0, sweep.cost_usd.max() * 1.12)
    share = (sweep.over_usd / sweep.last_turn_usd).max()
    few = len(sweep)
    ax.set_title(
        f"{few} budgets: over by at most {share:.2f} of the last turn, never under"
    )
    ax.legend(loc="upper left")
    mark_guess(ax, guess_usd, axis="y")
    clock_note(ax, note)
    return fig
