"""A person's word about a pending call: approve, reject, or say what became of it.

A decision is bound to the call's id, its tool and its arguments, to the letter. A
model that asks for something else under the same id has to be allowed that anew.
"""

from decimal import Inexact
from typing import Any

from labkit.conditions import unpriced_turns
from labkit.errors import ConfigError
from labkit.pricing import Amount, add, money
from labkit.state import RunState, StateError, pending
from labkit.toolcalls import ToolCall
from labkit.transcript import tool_message


def bound(call: ToolCall) -> dict[str, Any]:
    """What a decision about this call is bound to."""
    return {"call_id": call.id, "tool_name": call.name, "arguments": call.arguments}


def approve(state: RunState, call_id: str) -> None:
    """Allow a pending call. It runs when the run is resumed; twice acts once."""
    owner, call = find(state, call_id)
    withdraw(owner, call)
    owner.approvals.append(bound(call))


def reject(
    state: RunState, call_id: str, reason: str = "no reason was given", *,
    mute: bool = False,
) -> None:  # fmt: skip
    """Refuse a pending call, in words that the model will read.

    mute: say nothing, which is how a report becomes a lie (chapter 23). Here only so
        that the lie can be measured.
    """
    owner, call = find(state, call_id)
    if call.id in owner.started:
        raise StateError(
            f"{call_id}: was begun when the process died, so it may have run: find"
            " out, and say so with resolve"
        )
    withdraw(owner, call)
    words = "" if mute else f"The user declined this call: {reason}"
    owner.rejections.append({**bound(call), "words": words})


def resolve(state: RunState, call_id: str, *, ran: bool, result: str = "done") -> None:
    """Say what became of a write that was begun when the process died.

    ran: it has had its effect, and `result` is what the model will read. False: it
        has not, and will run when the run is resumed.

    StateError if nothing is in doubt about it. A subagent's call is not: its own
    state knows what it has done, and a resume goes down to it.
    """
    owner, call = find(state, call_id)
    if call.id not in owner.started or call.id in owner.children:
        raise StateError(f"{call_id}: nothing is in doubt about it; resume the run")
    owner.started.remove(call.id)
    if ran:
        withdraw(owner, call)
        owner.tool_runs += 1
        owner.remembered.clear()
        owner.messages.append(tool_message(call, result))


# A person's sum stays far within what can be added up to the digit (pricing.EXACT).
MOST_USD, DECIMALS = 10**9, 12


def settle(state: RunState, cost_usd: Amount) -> None:
    """Say what the turns cost whose bill was not known, subagents' included.

    Nobody else can: a turn that was cut off has no usage, and only the provider's own
    account says what it has billed.
    """
    if not unpriced_turns(state):
        raise StateError(f"run {state.run_id}: the cost of every turn is known")
    amount = money(cost_usd, "cost_usd")
    try:
        if amount >= MOST_USD or amount.as_tuple().exponent < -DECIMALS:
            raise Inexact
        state.own_cost = add(state.own_cost, amount)
    except Inexact:
        raise ConfigError(
            f"cost_usd is {cost_usd}: give dollars below {MOST_USD:,}, with at most"
            f" {DECIMALS} decimals",
            field="cost_usd",
        ) from None
    forget_unpriced(state)


def forget_unpriced(state: RunState) -> None:
    state.unpriced_turns = 0
    for child in state.children.values():
        forget_unpriced(child)


def withdraw(state: RunState, call: ToolCall) -> None:
    """Forget what was decided about a call: it has run, or there is a newer word."""
    for decisions in (state.approvals, state.rejections):
        decisions[:] = [d for d in decisions if d["call_id"] != call.id]


def approved(state: RunState, call: ToolCall) -> bool:
    """Has a person allowed exactly this?"""
    return bound(call) in state.approvals


def rejection(state: RunState, call: ToolCall) -> str | None:
    """The words of the refusal of exactly this call; None if it was not refused."""
    for each in state.rejections:
        if bound(call).items() <= each.items():
            return each["words"]
    return None


def find(state: RunState, call_id: str) -> tuple[RunState, ToolCall]:
    """The pending call of that id, and whose it is: this run's or a subagent's.

    Both may have a call of that id. What the run was interrupted for comes first.
    """
    owners = list(family(state))
    asked = (state.interruption or {}).get("run_id")
    owners.sort(key=lambda owner: owner.run_id != asked)  # stable: else from the top
    for owner in owners:
        for call in pending(owner):
            if call.id == call_id:
                return owner, call
    open_calls = ", ".join(c.id for o in owners for c in pending(o)) or "none"
    raise StateError(
        f"{call_id}: run {state.run_id} waits for no such call; pending: {open_calls}"
    )


def family(state: RunState):
    """The run and all its subagents' runs that are not over."""
    yield state
    waiting = {call.id for call in pending(state)}
    for call_id, child in state.children.items():
        if call_id in waiting:
            yield from family(child)
