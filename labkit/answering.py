"""One call: decided about, run, and answered in words under its id.

Whatever the code decides about a call is written into the transcript, in words: an
unknown tool, arguments that are no JSON, an exception, a refusal. A model that isn't
told makes something up (chapter 23, "the mute rejection").
"""

import asyncio
import copy
from functools import partial
from typing import Any

from labkit.clock import VirtualClockError
from labkit.conditions import Exit, cancelled
from labkit.decisions import approved, rejection, withdraw
from labkit.errors import shorten
from labkit.execution import MAY_HAVE, call_tool, progress_in
from labkit.runfile import SaveError
from labkit.session import Session, now_s
from labkit.toolcalls import ToolCall
from labkit.toolerrors import as_words, said
from labkit.tools import PermanentToolError, Tool, ToolContext, read_arguments
from labkit.transcript import tool_message

CANCELLED = "cancelled by the user"
# exit() in a tool must not take the run with it, nor must a future that something
# in it has cancelled. What else is no Exception leaves the call as it stands.
OF_THE_TOOL = (Exception, SystemExit, asyncio.CancelledError, GeneratorExit)


async def answer(session: Session, call: ToolCall) -> None:
    """Answer one pending call. Raises Exit where it has to stay pending."""
    words = rejection(session.state, call)
    if words is not None:  # first: also where the tool is gone meanwhile
        return reply(session, call, words, ok=False)
    try:
        tool = look_up(session, call)
        arguments = read_arguments(call.arguments, tool)
    except ValueError as error:
        if call.id in session.state.started:  # by a catalogue that had this tool
            raise Exit("interrupted", in_doubt(session, call, {})) from None
        return reply(session, call, f"Error: {error}", ok=False)
    permit(session, call, tool, arguments)
    known = session.memory.recall(tool, arguments)
    if known is not None:
        return reply(session, call, known, ok=True, cached=True)
    await execute(session, call, tool, arguments)


def look_up(session: Session, call: ToolCall) -> Tool:
    """The tool of that name. ValueError names those that there are."""
    if call.name not in session.by_name:
        names = ", ".join(session.by_name) or "none"
        name = shorten(call.name, 60)  # it comes from the model: any text, any length
        raise ValueError(f"there is no tool {name}; the tools are: {names}")
    return session.by_name[call.name]


def permit(
    session: Session, call: ToolCall, tool: Tool, arguments: dict[str, Any]
) -> None:
    """Raise Exit unless the call may run now: what needs a person waits for one."""
    state = session.state
    if call.id in state.started and not (tool.read_only or tool.takes_key):
        raise Exit("interrupted", in_doubt(session, call, arguments))
    if tool.needs_approval and not approved(state, call):
        session.tell(
            "approval_required",
            tool_name=tool.name,
            args=call.arguments,
            call_id=call.id,
        )
        about = named(session, call, arguments)
        raise Exit("interrupted", {"type": "approval", **about})


def in_doubt(session: Session, call: ToolCall, arguments: dict[str, Any]) -> dict:
    """The process died while this write ran: it may have had its effect or not."""
    return {"type": "in_doubt", **named(session, call, arguments)}


def named(session: Session, call: ToolCall, arguments: dict[str, Any]) -> dict:
    """Which call an interruption is about: all that a person needs to decide."""
    return {
        "run_id": session.state.run_id,
        "call_id": call.id,
        "tool_name": call.name,
        "args": arguments,
    }


async def execute(
    session: Session, call: ToolCall, tool: Tool, arguments: dict[str, Any]
) -> None:
    """Run the tool. What it raises is data for the model, unless nobody can mend it.

    KeyboardInterrupt is not data: it goes up, after everything is saved.
    """
    session.tell(
        "tool_start", tool_name=tool.name, args=call.arguments, call_id=call.id
    )
    if not tool.read_only and call.id not in session.state.started:
        session.state.started.append(call.id)
    session.save()
    began_s = now_s()

    def finish(content: str, ok: bool) -> None:
        session.state.tool_runs += 1
        session.memory.learn(tool, arguments, content if ok else None)
        reply(session, call, content, ok, ms=round(1000 * (now_s() - began_s)))

    told = CANCELLED if tool.read_only else f"{CANCELLED}; {MAY_HAVE}"
    try:
        # A copy: what a tool does to its arguments must not change what is remembered.
        own = copy.deepcopy(arguments)
        content = await call_tool(tool, own, context(session, call, tool))
    except (Exit, VirtualClockError, SaveError):
        raise  # the call stays pending
    except KeyboardInterrupt:
        finish(told, ok=False)
        raise
    except OF_THE_TOOL as error:
        if error is session.fault:  # in a subagent: no news for the model
            raise
        if session.is_cancelled:
            finish(told, ok=False)
            raise asyncio.CancelledError from None
        if session.stop.is_set:
            finish(told, ok=False)
            raise cancelled(session.stop.reason) from None
        finish(as_words(error, session.tool_error), ok=False)
        if ends_the_run(session, error):
            raise Exit("failed", error=said(error)) from None
    else:
        finish(content, ok=True)


def ends_the_run(session: Session, error: BaseException) -> bool:
    """Is there no point in telling the model?"""
    permanent = isinstance(error, PermanentToolError)
    stops = permanent and session.permanent_errors_stop
    return stops or session.tool_error == "fatal"


def context(session: Session, call: ToolCall, tool: Tool) -> ToolContext:
    """What the tool is told about its call."""
    report = partial(session.report, tool.name, call.id)
    run_id = session.state.run_id
    return ToolContext(
        call_id=call.id,
        run_id=run_id,
        idempotency_key=f"{run_id}/{call.id}",  # no run id has a slash
        stop=session.stop.child(),  # a timeout sets it, without stopping the run
        progress=progress_in(asyncio.get_running_loop(), report),
        host=session,
    )


def reply(
    session: Session, call: ToolCall, content: str, ok: bool, ms: int = 0, **more
) -> None:
    """Put the answer into the transcript. What was decided about the call is used
    up with it: an approval acts once."""
    state = session.state
    withdraw(state, call)
    if call.id in state.started:
        state.started.remove(call.id)
    state.messages.append(tool_message(call, content))
    session.tell(
        "tool_result", tool_name=call.name, ms=ms, ok=ok, call_id=call.id, **more
    )
