"""When to stop: a list of predicates, the two caps being only two of them (chapter 23).

A stop condition is a function of the state, asked before every step. It returns
False to go on, True to stop the run as interrupted under the function's own name, or
an `Exit` that says more.

    def enough_files(state):
        return state.tool_runs >= 12

    await run(state, tools, client, stop_conditions=[no_progress(3), enough_files])
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from labkit.errors import ConfigError
from labkit.pricing import Amount, Price, money, price_of
from labkit.state import STATUSES, RunState
from labkit.strictjson import encode
from labkit.transcript import calls_of


class Exit(Exception):
    """The run leaves the loop: with this status, for this reason, and for now.

    Raised by a tool, it stops the run with the call still pending, to be run again:
    fit for a read, or for a tool that takes its key (else the resume is in doubt).

    interruption: {"type": ...} and what belongs to it; all of it goes through JSON.
    error: why the run failed.

    >>> Exit("paused")
    Traceback (most recent call last):
    labkit.errors.ConfigError: status is 'paused': use one of completed, failed,
    max_turns_exceeded, budget_exceeded, interrupted
    """

    def __init__(
        self,
        status: str,
        interruption: dict[str, Any] | None = None,
        error: str | None = None,
    ):
        # What is saved must be readable: a state that is not would lose the run.
        if status not in ENDS:
            said = f"status is {status!r}: use one of {', '.join(ENDS)}"
            raise ConfigError(said, field="status")
        if interruption is None and status == "interrupted":
            interruption = {"type": "exit"}
        if not is_told(interruption):
            said = 'interruption must be JSON: {"type": "a word", ...}'
            raise ConfigError(said, field="interruption")
        if not isinstance(error, str | None):
            raise ConfigError(f"error is {error!r}: give a str", field="error")
        super().__init__(status, interruption, error)
        self.status = status
        self.interruption = interruption
        self.error = error


ENDS = [status for status in STATUSES if status != "running"]


def is_told(interruption: object) -> bool:
    """Nothing, or a dict with a type that a state file can hold."""
    if interruption is None:
        return True
    try:
        encode(interruption)
        return isinstance(interruption["type"], str)
    except (TypeError, ValueError, LookupError, RecursionError):
        return False


def cancelled(reason: str) -> Exit:
    """The way out when somebody pressed Stop."""
    return Exit("interrupted", {"type": "cancelled", "reason": reason})


StopCondition = Callable[[RunState], "bool | Exit"]


@dataclass(frozen=True)
class RunLimits:
    """The two caps of a run; None: no cap.

    max_turns: how often the model may be asked. Cost grows with its square.
    max_budget_usd: the spend is looked at before a turn, and what a turn costs is
        known after it: the cap is overshot by one turn at most, never by two.

    >>> RunLimits(max_turns=12, max_budget_usd="0.05").as_dict()
    {'max_turns': 12, 'max_budget_usd': '0.05'}
    """

    max_turns: int | None = 20
    max_budget_usd: Amount | None = None

    def __post_init__(self):
        turns = self.max_turns
        if turns is not None and (type(turns) is not int or turns < 0):
            raise ConfigError(
                f"max_turns is {turns!r}: give a whole number, or None for no cap",
                field="max_turns",
            )
        if self.max_budget_usd is not None:
            budget = money(self.max_budget_usd, "max_budget_usd")
            object.__setattr__(self, "max_budget_usd", budget)

    def as_dict(self) -> dict[str, Any]:
        """As it stands in a state file."""
        budget = self.max_budget_usd
        spelled = None if budget is None else str(budget)
        return {"max_turns": self.max_turns, "max_budget_usd": spelled}

    def conditions(self) -> list[StopCondition]:
        """The caps as stop conditions."""
        found = []
        if self.max_turns is not None:
            found.append(max_turns(self.max_turns))
        if self.max_budget_usd is not None:
            found.append(max_budget(self.max_budget_usd))
        return found


def max_turns(most: int) -> StopCondition:
    """Stop before turn number `most` + 1."""

    def condition(state: RunState) -> bool | Exit:
        reached = state.turns >= most
        return reached and Exit("max_turns_exceeded", {"type": "max_turns"})

    return condition


def max_budget(most_usd: Decimal) -> StopCondition:
    """Stop once this much is spent, subagents included."""

    def condition(state: RunState) -> bool | Exit:
        reached = state.cost >= most_usd
        return reached and Exit("budget_exceeded", {"type": "max_budget"})

    return condition


def no_progress(turns: int = 3) -> StopCondition:
    """Stop when the last `turns` turns asked for the same and were told the same."""

    def no_progress(state: RunState) -> bool:
        recent = _last_steps(state.messages, turns)
        return len(recent) == turns and all(step == recent[0] for step in recent[1:])

    return no_progress


def _last_steps(messages: list[dict], turns: int) -> list[str]:
    """For each of the last answered turns: what was asked, and what came of it."""
    steps, told = [], []
    for message in reversed(messages):
        if message["role"] == "tool":
            told.append(message["content"])
        elif message["role"] == "assistant":
            asked = [(call.name, call.arguments) for call in calls_of(message)]
            if not asked or len(steps) == turns:
                break
            if len(told) == len(asked):  # else it is the last one, still pending
                steps.append(json.dumps([asked, told[::-1]]))
            told = []
    return steps


def unpriced(prices: Mapping[str, Price] | None) -> StopCondition:
    """Stop where a budget cannot be held to, because a cost is not known. Unknown is
    not free: a ceiling over sums that count it as 0 never comes down."""

    def condition(state: RunState) -> bool | Exit:
        if price_of(state.model, prices) is None:
            reason = f"nobody has said what {state.model} costs: add it to prices"
        elif turns := unpriced_turns(state):
            reason = (
                f"nobody knows what {turns} turn(s) cost: the provider left out the"
                " usage, or the turn was cut off. Look it up, and settle it"
            )
        else:
            return False
        about = {"type": "unpriced", "run_id": state.run_id, "reason": reason}
        return Exit("interrupted", about)

    return condition


def unpriced_turns(state: RunState) -> int:
    """Turns that are not in the cost, subagents' included."""
    children = state.children.values()
    return state.unpriced_turns + sum(unpriced_turns(child) for child in children)


def context_size(tokens: int) -> StopCondition:
    """Stop when the next prompt would hold at least so many tokens, as the provider
    counted the last one with its reply."""

    def context_size(state: RunState) -> bool:
        return state.context_tokens >= tokens

    return context_size
