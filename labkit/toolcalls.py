"""Which tool call does a piece belong to? Deltas in, whole calls out.

A stream sends a tool call in pieces. By the book (OpenAI, "Function calling", under
streaming) the first has an index, an id and the name, and the later ones have the
same index and some more of the arguments. Servers in the wild leave the index out or
send null, repeat the name, blank the id, or give two calls one index. Four rules
sort them all:

1. A piece with an index continues the call that was opened under it, unless it
   brings both a name and another id: then it opens a new call.
2. A piece without an index continues the call with its id. Without an id either, it
   continues the last call, unless it brings a name where that call has one: then
   it opens a new call.
3. A piece that belongs to no call, and has neither id nor name to open one, is
   refused. Guessing could run a tool with another call's arguments.
4. What is empty is absent: a later "" never wipes an id or a name.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from labkit.badanswer import malformed
from labkit.errors import MalformedStream, shorten
from labkit.strictjson import as_object, member, mend

MAX_CALLS = 128  # in one turn; a stream with more has lost its mind
CUT = ("length", "content_filter")  # the finish reasons that say: the end is missing
CALLS = ("tool_calls", "function_call")  # those that promise a call


@dataclass(frozen=True)
class ToolCall:
    """One call that the model asks for.

    arguments: the text as sent. It may be "" or no JSON at all: that is the model's
        doing, so the harness answers it as data instead of failing the stream.
    """

    id: str
    name: str
    arguments: str


@dataclass
class _Draft:
    id: str = ""
    name: str = ""
    arguments: list[str] = field(default_factory=list)


class ToolCalls:
    """The calls of one turn, in the order in which they were opened.

    >>> calls = ToolCalls()
    >>> calls.add({"index": 0, "id": "c1", "function": {"name": "tide"}})
    6
    >>> calls.add({"index": 0, "function": {"arguments": '{"port":'}})
    8
    >>> calls.add({"index": 0, "id": "", "function": {"arguments": '"Faro"}'}})
    7
    >>> calls.whole()
    (ToolCall(id='c1', name='tide', arguments='{"port":"Faro"}'),)
    """

    def __init__(self) -> None:
        self._drafts: list[_Draft] = []
        self._at_index: dict[int, _Draft] = {}
        self._last: _Draft | None = None

    def add(self, delta: dict[str, Any]) -> int:
        """One piece; returns how many characters it brought: 0 says nothing new.

        Raises ValueError where it has a wrong type or no call.
        """
        index = member(delta, "index", int)
        id = member(delta, "id", str) or ""
        function = member(delta, "function", dict) or {}
        name = member(function, "name", str) or ""
        arguments = member(function, "arguments", str) or ""

        draft = self._find(index, id, name) or self._open(index, id, name)
        draft.id = draft.id or id
        if name != draft.name:  # some servers repeat it, some cut it in pieces
            draft.name += name
        draft.arguments.append(arguments)
        self._last = draft
        return len(id) + len(name) + len(arguments)

    def whole(self) -> tuple[ToolCall, ...]:
        """The calls so far. Only when the stream has finished are they complete."""
        return tuple(
            ToolCall(mend(d.id), mend(d.name), mend("".join(d.arguments)))
            for d in self._drafts
        )

    def _find(self, index: int | None, id: str, name: str) -> _Draft | None:
        """The call that the piece continues (rules 1 and 2); None if there is none."""
        if index is not None:
            draft = self._at_index.get(index)
            another = draft and name and id and draft.id and id != draft.id
            return None if another else draft
        if id:
            return next((d for d in self._drafts if d.id == id), None)
        another = name and self._last and self._last.name
        return None if another else self._last

    def _open(self, index: int | None, id: str, name: str) -> _Draft:
        """A new call, under its index or else under its position."""
        if not id and not name:
            where = "no index" if index is None else f"index {index}"
            raise ValueError(f"a piece of a tool call ({where}) came before its call")
        if index is None:
            index = len(self._drafts)
        if not 0 <= index < MAX_CALLS or len(self._drafts) == MAX_CALLS:
            raise ValueError(f"tool call {index}: a turn has {MAX_CALLS} at most")
        draft = self._at_index[index] = _Draft()
        self._drafts.append(draft)
        return draft


def as_delta(message: dict[str, Any]) -> dict[str, Any]:
    """A whole message as one large delta. Each of its calls is a call of its own,
    even where two share an id."""
    calls = member(message, "tool_calls", list) or []
    whole = [{**as_object(call), "index": n} for n, call in enumerate(calls)]
    return {**message, "tool_calls": whole}


def fault_of_calls(
    calls: Sequence[ToolCall], reason: str, text: str
) -> MalformedStream | None:
    """Why nobody may act on the calls of a finished answer; None if all is well.

    A call whose arguments are cut in the middle is left to its reader: half of an
    object is no JSON. But one that was cut before they began looks like a call
    without arguments, and would be run as one.
    """
    nameless = [call for call in calls if not call.name]
    if nameless:
        error = ValueError("a tool call without a name")
        return malformed("the answer", nameless[0].arguments, error, text)
    if calls and reason in CUT and not calls[-1].arguments.strip():
        return MalformedStream(
            f"the answer was cut off (finish_reason {reason}) before the arguments of"
            f" its tool call {shorten(calls[-1].name, 60)} came: raise max_tokens",
            partial=text,
        )
    if reason in CALLS and not calls and not text:
        return MalformedStream(
            f"the answer says that it calls a tool (finish_reason {reason}), but"
            " holds neither a call nor text: the call was lost; ask again"
        )
    return None
