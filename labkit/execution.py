"""Running one tool, with a Stop that reaches it (chapter 23, "Stop").

An async tool is cancelled, and ends at once. A blocking tool runs in a thread, and no
thread can be ended from outside: its Stop is a token that it must poll. One that
doesn't is waited for, since the work that it does goes on anyway.
"""

import asyncio
import contextvars
import inspect
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from labkit.clock import VirtualClockError, VirtualLoop
from labkit.tools import Tool, ToolContext, ToolError, as_text

MAY_HAVE = "it may have had its effect"  # what the model is told of a write


async def call_tool(
    tool: Tool, arguments: dict[str, Any], context: ToolContext | None = None
) -> str:
    """The tool's result as text.

    Raises what the tool raises; ToolError when its time is up; Stopped when the Stop
    reached it.
    """
    context = context or ToolContext()
    try:
        async with asyncio.timeout(tool.timeout_s) as limit:
            if is_async(tool.run):
                async with context.stop.guard():
                    result = await tool.run(arguments, context)
            else:
                result = await in_thread(tool.run, arguments, context)
                if inspect.isawaitable(result):  # a lambda around an async function
                    async with context.stop.guard():
                        result = await result
    except TimeoutError:
        if not limit.expired():  # the tool's own
            raise
        raise ToolError(too_late(tool)) from None
    return as_text(result)


def is_async(function: Callable) -> bool:
    """Is it `async def`, or an object with an async `__call__`?"""
    called = getattr(function, "__call__", None)  # noqa: B004
    return any(map(inspect.iscoroutinefunction, (function, called)))


def too_late(tool: Tool) -> str:
    """What the model is told. A write may have done its work all the same."""
    said = f"{tool.name} did not finish within {tool.timeout_s:g} s"
    return said if tool.read_only else f"{said}; {MAY_HAVE}"


async def in_thread(function: Callable, arguments: dict, context: ToolContext) -> Any:
    """Await a blocking function. Not asyncio.to_thread: a tool that never returns
    would keep the process from exiting."""
    loop = asyncio.get_running_loop()
    if isinstance(loop, VirtualLoop):
        raise VirtualClockError(
            f"{function!r} blocks, so it needs a thread, whose real work would race"
            " the jumping clock: make it `async def`, or use the ordinary loop"
        )
    outcome = loop.create_future()

    def deliver(error: BaseException | None, result: Any = None) -> None:
        if not outcome.done():  # nobody waits any more after a timeout
            outcome.set_result((error, result))

    def work() -> None:
        try:
            news = None, function(arguments, context)
        except BaseException as error:
            news = error, None
        with suppress(RuntimeError):  # the loop has closed meanwhile
            loop.call_soon_threadsafe(deliver, *news)

    run = contextvars.copy_context().run
    threading.Thread(target=run, args=(work,), daemon=True, name="labkit tool").start()
    try:
        error, result = await outcome
    except asyncio.CancelledError:
        context.stop.set("no longer waited for")
        raise
    if error is not None:
        raise error
    return result


def progress_in(
    loop: asyncio.AbstractEventLoop, report: Callable[[str], None]
) -> Callable[[str], None]:
    """`report`, callable from the loop and from any thread; always run in the loop."""

    def progress(label: str) -> None:
        if threading.get_ident() == home:
            report(str(label))
        else:
            with suppress(RuntimeError):  # the loop has closed meanwhile
                loop.call_soon_threadsafe(report, str(label))

    home = threading.get_ident()
    return progress
