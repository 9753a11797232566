"""Chapter 23, turn by turn: what the tables keep as sums, in the order it was paid."""

from dataclasses import replace

import pandas as pd

from labkit.experiments.agents import NO_CAP, columns, play
from labkit.experiments.stage import Stage, perform
from labkit.harness import RunLimits
from labkit.pricing import price_of


def turns(
    scenario: str = "runaway", cap: int = 100, clock: str = "virtual", **options
) -> pd.DataFrame:
    """A row a turn. `resent_tokens`: of the prompt, what the one before held already;
    `turn_usd`: what the turn cost; `spent_usd`: the run so far.

    options: those of `labkit.harness.run`.
    """

    async def scene(stage: Stage) -> list[dict]:
        limits = RunLimits(max_turns=cap)
        ended = await play(stage, scenario, limits=limits, **options)
        return [e for e in ended.trace.events if e["type"] == "turn"]

    frame = pd.DataFrame(perform(clock, scene, kind="scripted"))
    kept = frame[["turn", "prompt_tokens", "completion_tokens"]]
    spent_usd, resent = frame.cost_usd, frame.prompt_tokens.shift(fill_value=0)
    turn_usd = spent_usd.diff().fillna(spent_usd).round(6)
    return kept.assign(resent_tokens=resent, turn_usd=turn_usd, spent_usd=spent_usd)


def fixed_part_for(
    times: tuple[int, ...] = (10, 100, 300), turns: int = 20, tools: int = 200
) -> pd.DataFrame:
    """What makes `turns` turns so many times as dear: by how much each prompt has to
    grow, and what that is for each of `tools` tools. No run: a division."""
    base = _capped(turns)
    price = price_of("runaway")
    per_token_usd = turns * float(price.input_per_million) / 1e6
    rows = []
    for each in times:
        tokens = round((each - 1) * base / per_token_usd)
        rows.append(
            {
                "times": each,
                "cost_usd": round(each * base, 6),
                "more_tokens_a_turn": tokens,
                "or_tokens_a_tool": round(tokens / tools),
            }
        )
    return pd.DataFrame(rows)


def _capped(cap: int) -> float:
    return float(turns("runaway", cap).spent_usd.iloc[-1])


def resumed(caps: tuple[int, ...] = (12, 20), clock: str = "virtual") -> pd.DataFrame:
    """One run, its cap raised each time it has stopped; then, as `cap_before` None, a
    run that had the last cap from the beginning."""

    async def scene(stage: Stage) -> list[dict]:
        rows, state, before = [], None, 0
        for cap in caps:
            limits = RunLimits(max_turns=cap)
            ended = await play(stage, "runaway", state=state, limits=limits)
            rows.append({"cap_before": before, "cap": cap, **columns(ended)})
            state, before = ended.state, cap
        ended = await play(stage, "runaway", limits=RunLimits(max_turns=caps[-1]))
        return [*rows, {"cap_before": None, "cap": caps[-1], **columns(ended)}]

    frame = pd.DataFrame(perform(clock, scene, kind="scripted"))
    return frame.astype({"cap_before": "Int64"}).drop(columns="answer")


def unpriced(clock: str = "virtual") -> pd.DataFrame:
    """A model that nobody has priced, without a budget and with one; then priced."""
    budget = replace(NO_CAP, max_budget_usd="0.05")
    cases = {
        "no price, no budget": {"prices": {}},
        "no price, a budget": {"prices": {}, "limits": budget},
        "a price, a budget": {"limits": budget},
    }

    async def scene(stage: Stage) -> list[dict]:
        rows = []
        for case, options in cases.items():
            state = (await play(stage, "plan", **options)).state
            why = state.interruption or {}
            rows.append(
                {
                    "case": case,
                    "status": state.status,
                    "turns": state.turns,
                    "cost_usd": float(state.cost),
                    "unpriced_turns": state.unpriced_turns,
                    "reason": why.get("reason", ""),
                }
            )
        return rows

    return pd.DataFrame(perform(clock, scene, kind="scripted"))
