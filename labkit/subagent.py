"""A tool with a whole run behind it (chapter 23, "a subagent is a tool").

The child has a transcript of its own, of which the parent reads one summary; limits
of its own; and the parent's Stop. Three more things are needed, which ten lines leave
out (`naive_subagent` keeps those ten, to be measured):

- its cost counts as the parent's at once, and it stops at the parent's budget;
- what interrupts the child for a person interrupts the parent. `approve`, `reject`
  and `resolve` on the parent's state reach it, and a resume goes down to it;
- its state is saved inside the parent's: one file, so that the two never disagree.
"""

import hashlib
import re
from collections.abc import Sequence
from contextlib import nullcontext
from typing import Any

from labkit.conditions import Exit, RunLimits
from labkit.harness import new_run, run
from labkit.session import Session
from labkit.state import RunState
from labkit.tools import Tool, ToolContext, ToolError

LIMITS = RunLimits(max_turns=6, max_budget_usd="0.05")

QUESTION = {
    "type": "object",
    "properties": {"question": {"type": "string"}},
    "required": ["question"],
}


def subagent(
    name: str, description: str, tools: Sequence[Tool], client: Any, *,
    system: str | None = None, model: str | None = None,
    limits: RunLimits = LIMITS, **options: Any,
) -> Tool:  # fmt: skip
    """A tool that takes a question and answers with what a run of its own found.

    system: the child's instructions. model: what it asks; None: the parent's model.
    limits: its own caps. Reaching them is an error in words for the parent, which
        goes on. options: for its `run`: dedupe, tool_error, stop_conditions.
    """

    async def investigate(args: dict[str, Any], context: ToolContext) -> str:
        host = context.host
        child = host.state.children.get(context.call_id)
        if child is None:
            child = new_run(
                model or host.state.model, args["question"], system, child_id(context)
            )
            host.state.children[context.call_id] = child
        try:
            await run(
                child, tools, client, stop=context.stop, store=Inside(host),
                limits=within(limits, child, host), trace=host.trace,
                prices=host.prices, on_progress=host.on_progress, **options,
            )  # fmt: skip
        except (Exception, SystemExit) as error:  # of a callback, or a condition
            host.fault = error
            raise
        context.stop.check()
        return summary(child, host)

    # takes_key: after a crash it may be run again, since the child's own state says
    # what it has done.
    return Tool(
        name, description, QUESTION, investigate, takes_key=True, cacheable=False,
        read_only=all(tool.read_only for tool in tools),
    )  # fmt: skip


def summary(child: RunState, host: Session) -> str:
    """What the parent's model reads. Raises Exit where a person has to decide first,
    or the parent's budget is spent."""
    if child.status == "completed":
        return child.output
    why_not = child.interruption or {}
    if child.status == "interrupted" and why_not["type"] != "stop_condition":
        raise Exit("interrupted", {"run_id": child.run_id, **why_not})
    left = host.budget_left_usd
    if child.status == "budget_exceeded" and left is not None and left <= 0:
        raise Exit("budget_exceeded", {"type": "max_budget", "run_id": child.run_id})
    why = child.error or why_not.get("name") or child.status
    raise ToolError(f"the subagent stopped without an answer: {why}")


def within(limits: RunLimits, child: RunState, host: Session) -> RunLimits:
    """The child's limits, cut down to what the parent may still spend."""
    own, left = limits.max_budget_usd, host.budget_left_usd
    if left is None:
        return limits
    most = max(child.cost + left, 0)
    return RunLimits(limits.max_turns, most if own is None else min(own, most))


def child_id(context: ToolContext) -> str:
    """The parent's id, a dot, and the call's id, as far as that is a plain name.

    >>> child_id(ToolContext("c1", "n1")), child_id(ToolContext("c:1", "n1"))
    ('n1.c1', 'n1.c_1-7c9d30')
    """
    name = re.sub("[^A-Za-z0-9._-]", "_", context.call_id)
    if name != context.call_id:  # two that differ must not become one
        digest = hashlib.sha256(context.call_id.encode(errors="replace")).hexdigest()
        name += f"-{digest[:6]}"
    return f"{context.run_id}.{name}"


class Inside:
    """A store for a state that lives inside another: saving it saves the whole."""

    def __init__(self, host: Session):
        self._host = host

    def save(self, state: RunState) -> None:
        self._host.save()

    def check(self, state: RunState) -> None:
        """The parent's has been checked."""

    def lock(self, run_id: str):
        """The parent's is held."""
        return nullcontext()


def naive_subagent(
    name: str, description: str, tools: Sequence[Tool], client: Any, *,
    system: str | None = None, model: str | None = None, limits: RunLimits = LIMITS,
) -> Tool:  # fmt: skip
    """As the chapter prints it: the child's cost reaches nobody's budget, and its
    wait for an approval becomes "no result"."""

    async def investigate(args: dict[str, Any], context: ToolContext) -> str:
        host = context.host
        child = new_run(
            model or host.state.model, args["question"], system, child_id(context)
        )
        await run(child, tools, client, limits=limits, stop=context.stop,
                  prices=host.prices)  # fmt: skip
        return child.output or "no result"

    return Tool(name, description, QUESTION, investigate, read_only=True)
