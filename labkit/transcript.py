"""The transcript: the messages of a run, and the question it always begins with:
which calls are still pending? (chapter 23)

The keys of a message stand in a fixed order. Providers count tokens over this text,
and an idempotency key holds for the same bytes only.
"""

from collections.abc import Iterable
from typing import Any

from labkit.reply import Reply
from labkit.strictjson import mend
from labkit.toolcalls import ToolCall

Message = dict[str, Any]


def assistant_message(reply: Reply, ids: Iterable[str] | None = None) -> Message:
    """What the model said. `ids` replace the ids of its calls, see `call_ids`."""
    if not reply.tool_calls:
        return {"role": "assistant", "content": reply.text}
    ids = [call.id for call in reply.tool_calls] if ids is None else ids
    calls = [
        {
            "id": id,
            "type": "function",
            "function": {"name": call.name, "arguments": call.arguments},
        }
        for id, call in zip(ids, reply.tool_calls, strict=True)
    ]
    return {"role": "assistant", "content": reply.text or None, "tool_calls": calls}


def tool_message(call: ToolCall, content: str) -> Message:
    """The answer to a call."""
    return {
        "role": "tool",
        "tool_call_id": call.id,
        "name": call.name,
        "content": mend(content),
    }


def calls_of(message: Message) -> list[ToolCall]:
    """The calls that a message asks for."""
    return [
        ToolCall(c["id"], c["function"]["name"], c["function"]["arguments"])
        for c in message.get("tool_calls") or ()
    ]


def pending_calls(messages: list[Message]) -> list[ToolCall]:
    """The calls of the last assistant message that have no answer yet, by id.

    >>> asked = {"id": "c1", "function": {"name": "list_files", "arguments": "{}"}}
    >>> messages = [{"role": "assistant", "content": None, "tool_calls": [asked]}]
    >>> pending_calls(messages)
    [ToolCall(id='c1', name='list_files', arguments='{}')]
    >>> answer = tool_message(pending_calls(messages)[0], "[]")
    >>> pending_calls([*messages, answer])
    []
    """
    answered = set()
    for message in reversed(messages):
        if message["role"] == "tool":
            answered.add(message["tool_call_id"])
        elif message["role"] == "assistant":
            return [c for c in calls_of(message) if c.id not in answered]
        else:
            break  # somebody spoke after it: nothing can be answered any more
    return []


def call_ids(reply: Reply, messages: list[Message], turn: int) -> list[str]:
    """One id for each call of a reply, such that no two in the transcript are alike.

    The provider's own, where it can be kept. A call without an id, or with one that
    an earlier call has, gets a made-up one: always the same for the same transcript,
    since it is made of the turn and the place. Otherwise an answer could go to the
    wrong call, and an approval could cover another.
    """
    # A turn is only asked for when every call before it has its answer.
    taken = {message.get("tool_call_id") for message in messages}
    ids = []
    for place, call in enumerate(reply.tool_calls):
        id, tries = call.id, 0
        while not id or id in taken:
            id = f"call_{turn}_{place}" + (f"_{tries}" if tries else "")
            tries += 1
        taken.add(id)
        ids.append(id)
    return ids
