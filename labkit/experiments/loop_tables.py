"""Chapter 23, the loop and its bill: turns, caps, budgets, catalogues, caching."""

from dataclasses import replace

import pandas as pd

from labkit.experiments.agents import NO_CAP, begin, columns, play
from labkit.experiments.stage import Stage, perform
from labkit.harness import RunLimits
from labkit.pricing import CHAPTER, Price
from labkit.workspace import PATH, Workspace

CAPS = (8, 20, 50, 100)
BUDGETS_USD = ("0.010", "0.050", "0.250")


def plan(cap: int = 20, clock: str = "virtual") -> pd.DataFrame:
    """The task that needs three turns: the whole run, then turn by turn."""

    async def scene(stage: Stage) -> list[dict]:
        ended = await play(stage, "plan", limits=RunLimits(max_turns=cap))
        rows = [{"row": "run", **columns(ended)}]
        for event in ended.trace.events:
            if event["type"] == "turn":
                names = ("prompt_tokens", "completion_tokens", "cost_usd")
                row = {"row": f"turn {event['turn']}"}
                rows.append(row | {name: event[name] for name in names})
        return rows

    frame = pd.DataFrame(perform(clock, scene, kind="scripted"))
    return frame.astype({"turns": "Int64", "tool_runs": "Int64"})


def turn_cap(caps: tuple[int, ...] = CAPS, clock: str = "virtual") -> pd.DataFrame:
    """A model that never stops asking, under four caps."""

    async def scene(stage: Stage) -> list[dict]:
        rows = []
        for cap in caps:
            ended = await play(stage, "runaway", limits=RunLimits(max_turns=cap))
            rows.append({"cap": cap, **columns(ended)})
        return rows

    return pd.DataFrame(perform(clock, scene, kind="scripted"))


def budget(
    budgets_usd: tuple[str, ...] = BUDGETS_USD, clock: str = "virtual"
) -> pd.DataFrame:
    """The same without a cap on turns, under three budgets. `over_usd`: by how much
    the budget was overshot; `last_turn_usd`: what the last turn cost."""

    async def scene(stage: Stage) -> list[dict]:
        rows = []
        for usd in budgets_usd:
            limits = replace(NO_CAP, max_budget_usd=usd)
            ended = await play(stage, "runaway", limits=limits)
            costs = [e["cost_usd"] for e in ended.trace.events if e["type"] == "turn"]
            rows.append(
                {
                    "budget_usd": float(usd),
                    **columns(ended),
                    "over_usd": round(float(ended.state.cost) - float(usd), 6),
                    "last_turn_usd": round(costs[-1] - costs[-2], 6),
                }
            )
        return rows

    return pd.DataFrame(perform(clock, scene, kind="scripted"))


def caching(caps: tuple[int, ...] = CAPS, clock: str = "virtual") -> pd.DataFrame:
    """The caps once more, with cached input at a tenth of the price.

    The provider counts as cached what the request before held already.
    """
    tenth = Price(
        CHAPTER.input_per_million,
        CHAPTER.output_per_million,
        CHAPTER.input_per_million / 10,
    )

    async def scene(stage: Stage) -> list[dict]:
        rows = []
        for cap in caps:
            row = {"cap": cap}
            for name, price in (("cost_usd", CHAPTER), ("cached_cost_usd", tenth)):
                limits, prices = RunLimits(max_turns=cap), {"runaway": price}
                ended = await play(stage, "runaway", limits=limits, prices=prices)
                row[name] = float(ended.state.cost)
            row["saved_percent"] = round(
                100 - 100 * row["cached_cost_usd"] / row["cost_usd"], 3
            )
            rows.append(row)
        return rows

    return pd.DataFrame(perform(clock, scene, kind="scripted"))


def catalogue(
    sizes: tuple[int, ...] = (4, 20, 200),
    history: tuple[int, ...] = (0, 40),
    turns: int = 20,
    clock: str = "virtual",
) -> pd.DataFrame:
    """The same twenty turns with more tools, and with messages from before.

    `times`: the cost, as a multiple of the first row's.
    """

    async def scene(stage: Stage) -> list[dict]:
        rows = []
        for tools in sizes:
            for messages in history:
                state = begin("runaway")
                state.messages[1:1] = _chatter(messages)
                ended = await play(
                    stage, "runaway", state=state, tools=_catalogue(tools),
                    limits=RunLimits(max_turns=turns),
                )  # fmt: skip
                names = ("turns", "prompt_tokens", "completion_tokens", "cost_usd")
                counted = {name: columns(ended)[name] for name in names}
                rows.append({"tools": tools, "history": messages} | counted)
        return rows

    frame = pd.DataFrame(perform(clock, scene, kind="scripted"))
    return frame.assign(times=(frame.cost_usd / frame.cost_usd[0]).round(3))


def _catalogue(size: int) -> list:
    """The four tools, and as many modest ones as it takes."""
    four = Workspace().tools()
    read = four[1]
    more = [
        replace(
            read,
            name=f"read_source_{n}",
            description=f"Read one document of source {n}, by its path.",
            parameters=PATH,
        )
        for n in range(size - len(four))
    ]
    return four + more


def _chatter(messages: int) -> list[dict]:
    """A conversation from before: short questions, answers of a sentence."""
    pair = [
        {"role": "user", "content": "And what about the file after that one?"},
        {
            "role": "assistant",
            "content": "It holds a few lines about requests, none of them unusual, "
            "so I would go on to the next one.",
        },
    ]
    return pair * (messages // 2)
