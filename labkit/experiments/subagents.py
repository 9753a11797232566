"""Chapter 23, a tool with an agent behind it: as printed, and mended."""

import pandas as pd

from labkit.experiments.agents import NO_CAP, Ended, begin, play
from labkit.experiments.stage import Stage, perform
from labkit.harness import RunLimits, new_run
from labkit.subagent import naive_subagent, subagent
from labkit.workspace import SYSTEM, Workspace

QUESTION = "Which file mentions a timeout?"  # what the scenario `delegate` hands down
DESCRIPTION = "Look into one question and come back with a short answer."
VARIANTS = {"as printed": naive_subagent, "mended": subagent}
TIGHT_USD = "0.001"


def subagents(clock: str = "virtual") -> pd.DataFrame:
    """A parent that hands its question to a child, three times over.

    cost_usd: what the parent's budget sees. paid_usd: what was really spent, by both.
    child_turns: what the child needed; child_run_id: its name, if the parent knows it.
    """
    cases = {
        "the child finds the answer": ("plan", NO_CAP),
        "the child wants to delete": ("destructive", NO_CAP),
        f"a budget of ${TIGHT_USD}": (
            "plan",
            RunLimits(max_turns=None, max_budget_usd=TIGHT_USD),
        ),
    }

    async def scene(stage: Stage) -> list[dict]:
        return [
            {"case": case, "variant": variant}
            | await _delegate(stage, make, child_scenario, limits)
            for case, (child_scenario, limits) in cases.items()
            for variant, make in VARIANTS.items()
        ]

    return pd.DataFrame(perform(clock, scene, kind="scripted"))


async def _delegate(stage: Stage, make, child_scenario: str, limits) -> dict:
    workspace = Workspace()
    async with stage.client() as client:
        research = make(
            "research", DESCRIPTION, workspace.tools(), client,
            system=SYSTEM, model=child_scenario,
        )  # fmt: skip
        parent = begin("delegate")
        ended = await play(
            stage, "delegate", state=parent, workspace=workspace, tools=[research],
            limits=limits,
        )  # fmt: skip
    child = next(iter(parent.children.values()), None)
    alone = await _child_alone(stage, child_scenario)
    paid = parent.cost if child else parent.cost + alone.state.cost
    interruption = parent.interruption or {}
    return {
        "status": parent.status,
        "waits_for": interruption.get("type", ""),
        "answer": parent.output or "",
        "parent_turns": parent.turns,
        "parent_messages": len(parent.messages),
        "child_turns": child.turns if child else alone.state.turns,
        "cost_usd": float(parent.cost),
        "paid_usd": float(paid),
        "the_parent_read": _told(ended),
    }


async def _child_alone(stage: Stage, scenario: str) -> Ended:
    """The same child without a parent: what the naive one costs, and tells nobody."""
    return await play(stage, scenario, state=new_run(scenario, QUESTION, SYSTEM))


def _told(ended: Ended) -> str:
    results = [m["content"] for m in ended.state.messages if m["role"] == "tool"]
    return results[0] if results else ""
