"""A client that plays a script, and tools to go with it: the harness without HTTP.

Stateless, as mock's scripted provider is: the turn is the number of assistant messages
in the transcript, so a run can be taken up again by another client.
"""

import asyncio
import copy

from labkit.reply import Reply, Timings
from labkit.toolcalls import ToolCall
from labkit.tools import NO_PARAMETERS, Tool
from labkit.usage import Usage

USAGE = Usage(100, 10, 110)
PATH = {
    "type": "object",
    "properties": {"path": {"type": "string"}},
    "required": ["path"],
}


def calls(*asked: tuple[str, str, str], usage: Usage | None = USAGE) -> Reply:
    """A turn that asks for tools: (id, name, arguments) each."""
    wanted = tuple(ToolCall(*each) for each in asked)
    return Reply("", wanted, "tool_calls", usage, Timings(0, None, 0), ())


def says(text: str, usage: Usage | None = USAGE) -> Reply:
    return Reply(text, (), "stop", usage, Timings(0, 0, 0), ())


class Player:
    """turns: Reply, str, an error to raise, or None: silence for ever. The last one
    is played for ever after. `asked` holds what each turn was asked with."""

    def __init__(self, *turns):
        self._turns = turns
        self.asked: list[dict] = []

    def stream(self, messages, *, key, stop, model, tools=()):
        self.asked.append(
            {"messages": copy.deepcopy(messages), "key": key, "tools": tools}
        )
        turn = sum(message["role"] == "assistant" for message in messages)
        return Playing(self._turns[min(turn, len(self._turns) - 1)], stop)


class Playing:
    def __init__(self, turn, stop):
        self._turn, self._stop = turn, stop
        self.reply = says(turn) if isinstance(turn, str) else turn

    async def __aenter__(self):
        return self

    async def __aexit__(self, *error):
        pass

    async def __aiter__(self):
        if isinstance(self._turn, BaseException):
            raise self._turn
        if self._turn is None:
            async with self._stop.guard():
                await asyncio.Event().wait()
        if self.reply.text:
            yield self.reply.text


class Counted:
    """A tool that counts its runs: `ran` holds their arguments.

    result: what it gives back, an error that it raises, or a function (maybe async)
    of arguments and context.
    """

    def __init__(self, name="look", result="ok", parameters=NO_PARAMETERS, **flags):
        self.ran: list[dict] = []
        self._result = result
        self.tool = Tool(name, f"Does {name}.", parameters, self._run, **flags)

    async def _run(self, args, context):
        self.ran.append(args)
        if isinstance(self._result, BaseException):
            raise self._result
        if not callable(self._result):
            return self._result
        result = self._result(args, context)
        return await result if asyncio.iscoroutine(result) else result


def answers(state) -> dict[str, str]:
    """What the calls of a run were answered, by id."""
    return {
        message["tool_call_id"]: message["content"]
        for message in state.messages
        if message["role"] == "tool"
    }
