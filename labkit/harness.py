"""The loop that survives (chapter 23): a function over a state that can be saved.

    state = new_run("plan", "Which file mentions a timeout?")
    await run(state, tools, client, limits=RunLimits(max_turns=20))
    state.status, state.output, state.cost

Every step first asks what may stop the run, then what is pending. So resuming, going
on after an approval and the normal path are one path, and a run that was capped keeps
its last request pending: raise the cap, and it goes on exactly there.

Before each effect (a turn is sent, a tool is run) the state is saved. What the disk
says is therefore never more than one effect behind, and it says which: a turn is sent
again under the same key, a read is run again, and a write that may have run is put to
a person.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext

from labkit.answering import answer
from labkit.asking import ask
from labkit.cancel import Stop
from labkit.client import ChatClient
from labkit.conditions import (
    Exit,
    RunLimits,
    StopCondition,
    cancelled,
    context_size,
    max_budget,
    max_turns,
    no_progress,
)
from labkit.decisions import approve, reject, resolve, settle
from labkit.errors import CallError, DeadlineError, Stopped
from labkit.pricing import Price
from labkit.retry import verdict_of
from labkit.session import Session
from labkit.state import RunState, new_run, pending
from labkit.store import RunStore
from labkit.tools import Tool
from labkit.trace import MemoryTrace

__all__ = [
    "Exit", "RunLimits", "RunState", "approve", "context_size", "max_budget",
    "max_turns", "new_run", "no_progress", "pending", "reject", "resolve", "run",
    "settle",
]  # fmt: skip


async def run(
    state: RunState,
    tools: Sequence[Tool],
    client: ChatClient,
    *,
    limits: RunLimits | None = None,
    stop: Stop | None = None,
    store: RunStore | None = None,
    trace: MemoryTrace | None = None,
    dedupe: bool | str = False,
    tool_error: str = "words",
    permanent_errors_stop: bool = True,
    stop_conditions: Sequence[StopCondition] = (),
    prices: Mapping[str, Price] | None = None,
    on_progress: Callable[[str], None] | None = None,
    on_text: Callable[[str], None] | None = None,
) -> RunState:
    """Go on with a run until it leaves the loop. Returns `state`, which says how.

    The exits: completed (`output`), failed (`error`), and three that can be resumed,
    by calling this again: max_turns_exceeded, budget_exceeded, interrupted. A run that
    is completed or failed is returned as it is.

    What interrupts it (`interruption["type"]`): approval, in_doubt: a call waits for
    `approve` or `reject`, or for `resolve`. cancelled: Stop, or the task was. provider:
    it was not reached or refused, in a way that passes or that a person can mend; what
    it will never accept has failed. unpriced: there is a budget, and a turn whose cost
    nobody knows: `settle`. stop_condition. Or what an Exit of yours says. An answer
    that is cut (finish_reason length or content_filter) has failed, with its text in
    `output`.

    limits: both caps; None: those that the state was run with last, else 20 turns. A
        budget that is not said again is gone: to raise one cap alone, give
        `replace(RunLimits(**state.limits), max_turns=40)`.
    stop: one button for the turn and the tools. A call that had started is answered
        "cancelled by the user", so that a resume does not run it again; a turn that
        was cut off is asked anew, and its cost is not known (`unpriced_turns`).
    store: where the state is kept, and locked while it runs.
    trace: a Trace or a MemoryTrace.
    dedupe: answer equal reads from memory; see labkit.dedupe.
    tool_error: what becomes of an exception: "words" for the model, an "opaque" text,
        or "fatal": the run has failed.
    permanent_errors_stop: a PermanentToolError ends the run; False: it is words too.
    stop_conditions: see labkit.conditions.
    prices: model -> Price; None: labkit.pricing.PRICES.
    on_progress, on_text: called with each label of a tool, each piece of an answer.

    Raises StateError if the run is held by another process, or went on without this
    copy of its state; CancelledError, KeyboardInterrupt, and what a callback or a
    stop condition of yours raises, or the disk of the trace, after all is saved.
    """
    if not state.resumable:
        return state
    session = Session(
        state, tools, client, limits or RunLimits(**state.limits or {}),
        (stop or Stop()).child(), store, trace, dedupe, tool_error,
        permanent_errors_stop, stop_conditions, prices, on_progress, on_text,
    )  # fmt: skip
    with store.lock(state.run_id) if store else nullcontext():
        if store:
            store.check(state)
        await loop(session)
    return state


async def loop(session: Session) -> None:
    """Answer what is pending, else ask; until there is an output, or an Exit."""
    state = session.state
    state.status, state.interruption = "running", None
    state.limits = session.limits.as_dict()
    try:
        while state.output is None:
            if session.is_cancelled:
                raise asyncio.CancelledError  # a tool has swallowed it
            session.check()
            calls = pending(state)
            await (answer(session, calls[0]) if calls else ask(session))
        status = "failed" if state.error else "completed"
        session.close(Exit(status, error=state.error))
    except Exit as exit:
        session.close(exit)
    except Stopped as stopped:  # a turn was cut off
        session.close(cancelled(stopped.reason))
    except CallError as error:
        session.close(of_provider(error))
    except (asyncio.CancelledError, KeyboardInterrupt) as error:
        session.close(cancelled(session.stop.reason or type(error).__name__))
        raise
    except BaseException:  # a stop condition, a callback, the disk of the trace
        session.rescue()  # what has been paid for is not lost with it
        raise
    if session.fault:  # in the last tool
        raise session.fault


def of_provider(error: CallError) -> Exit:
    """What passes, or what a person can mend, leaves the run to be resumed."""
    mendable = getattr(error, "status", None) in (401, 402, 403)
    # A deadline is fatal for one call only: the next one has all its time again.
    passes = verdict_of(error) != "fatal" or isinstance(error, DeadlineError)
    if not (passes or mendable):
        return Exit("failed", error=str(error))
    return Exit("interrupted", {"type": "provider", "reason": str(error)})
