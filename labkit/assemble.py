"""Chat chunks in, one reply out; and the verdict whether the reply is whole.

An `Assembler` takes the events of one stream, or the body of one plain answer, in
OpenAI's Chat Completions form. The rule of chapter 14 decides about the end: a
reply without a finish_reason did not finish, whether `[DONE]` came or not.

"Compatible" servers differ. What we make of the differences:

- null, a missing key and "" all mean absent. A wrong type is a MalformedStream.
- `[DONE]` may have white space around it and nothing else: a test for the prefix
  would let a model's own text forge the end.
- Data that is blank or starts with a colon is a keep-alive in the wrong place, and
  is skipped. No JSON starts with a colon, so nothing of an answer can hide there.
  So is an event with the name of one, whatever its data.
- An error is an `error` key, an `event: error`, `"object": "error"` (or `"type"`),
  or the finish_reason "error". One in another form is told if no answer comes.
- Only choice 0 is ours. `refusal` and reasoning are not its text, but signs of life.
- A whole message in place of the first delta is an answer sent in one event.
- A usage that is missing, torn or zero is unknown (None), never 0.
- finish_reason "stop" after tool calls is still a tool-call turn: look at
  `tool_calls`, not at the reason. Once it says that the answer was cut, it stays so.
"""

from collections.abc import Iterable
from typing import Any

from labkit.badanswer import error_event, malformed, provider_error
from labkit.errors import EmptyStream, IncompleteStream, MalformedStream, StreamError
from labkit.sse import SSEDecoder, SSEEvent
from labkit.strictjson import WHITE_SPACE, as_object, member, mend, parse_object
from labkit.toolcalls import CUT, ToolCall, ToolCalls, as_delta, fault_of_calls
from labkit.usage import Usage

__all__ = ["Assembler", "ToolCall", "Usage", "read_stream"]

ANSWER_LIMIT = 32 << 20  # characters of text and tool calls: far beyond any model

KEEP_ALIVES = ("ping", "keepalive", "keep-alive", "heartbeat")  # names of events
# What a model says beside its answer: DeepSeek and vLLM, OpenRouter, OpenAI.
ASIDES = ("reasoning_content", "reasoning", "refusal")
NO_REASON = ("", "null", "None")  # a null that became a word on its way


class Assembler:
    """Collects one reply.

    >>> reply = Assembler()
    >>> reply.add(SSEEvent('{"choices": [{"delta": {"content": "A tide"}}]}'))
    'A tide'
    >>> reply.add(SSEEvent('{"choices": [{"delta": {}, "finish_reason": "stop"}]}'))
    ''
    >>> reply.finish()
    >>> reply.text, reply.finish_reason
    ('A tide', 'stop')

    id: the provider's name for the reply, "" if it gave none.
    finish_reason: "stop", "length", "tool_calls" ...; None until it comes.
    usage: the last usage that came (servers repeat it, counting up), or None.
    done: `[DONE]` was seen; events after it are ignored.
    signs: signs of life so far: pieces of content, of reasoning or of a tool call,
        and the finish. A role, a usage, a keep-alive or an empty piece is none.
        Limits on silence watch it.
    """

    def __init__(self) -> None:
        self.id = ""
        self.finish_reason: str | None = None
        self.usage: Usage | None = None
        self.done = False
        self.signs = 0
        self._chunks = 0
        self._size = 0
        self._pieces: list[str] = []
        self._half = ""  # the first half of a surrogate pair, kept for the second
        self._calls = ToolCalls()
        self._stray = ""  # the last chunk without choices: perhaps an error's words

    @property
    def text(self) -> str:
        """All the text so far: exactly what `add` has returned, joined."""
        return "".join(self._pieces)

    @property
    def tool_calls(self) -> tuple[ToolCall, ...]:
        """The tool calls so far, in the order in which they were opened."""
        return self._calls.whole()

    @property
    def opened(self) -> bool:
        """Has the answer begun? A role chunk alone opens nothing."""
        return self.signs > 0

    def add(self, event: SSEEvent) -> str:
        """Take one event; return the new text of choice 0, "" if there is none.

        Raises ProviderError or MalformedStream, with the text so far as `partial`.
        """
        data = event.data.strip(WHITE_SPACE)
        named = event.event != "message" and not self.done
        if named and self._is_aside(event.event.lower(), data):
            return ""
        self.done = self.done or data == "[DONE]"
        if self.done or not data or data.startswith(":"):
            return ""
        self._chunks += 1
        try:
            chunk = parse_object(data)
            choice = self._read_frame(chunk)
            if not (choice or chunk.get("choices") or chunk.get("usage")):
                self._stray = data
            delta = member(choice, "delta", dict) or self._in_one_event(choice)
            return self._read_choice(choice, delta)
        except ValueError as error:
            where = f"chunk {self._chunks}"
            raise malformed(where, data, error, self.text) from error

    def finish(self, leftover: str = "") -> None:
        """The body has ended: return if the reply is whole, else raise why not.

        leftover: what `SSEDecoder.close` returned, for the message.
        Raises EmptyStream, IncompleteStream or MalformedStream.
        """
        leftover = leftover or self._stray
        hint = f" Left over: {leftover!r:.200}." if leftover else ""
        if not self._chunks:
            raise EmptyStream(
                "the provider answered 200 but sent no data: ask again, and check"
                f" the base URL if it stays so.{hint}"
            )
        if self.finish_reason is None:
            end = "with [DONE] but " if self.done else ""
            raise IncompleteStream(
                f"the answer ended {end}without a finish_reason: its text is partial,"
                f" fit to show but not to save; ask again.{hint}",
                partial=self.text,
            )
        fault = fault_of_calls(self.tool_calls, self.finish_reason, self.text)
        if fault:
            raise fault

    @classmethod
    def from_body(cls, body: bytes) -> "Assembler":
        """The reply in the body of a plain answer (not streamed), whole.

        Raises EmptyStream, MalformedStream, ProviderError or IncompleteStream.
        """
        reply = cls()
        text = body.decode("utf-8-sig", "replace").strip()
        try:
            if text:
                reply._chunks = 1
                reply._read_message(parse_object(text))
        except ValueError as error:
            raise malformed("the body", text, error, reply.text) from error
        reply.finish()
        reply.done = True
        return reply

    def _read_message(self, body: dict[str, Any]) -> None:
        """A plain answer: its message is one large delta."""
        choice = self._read_frame(body)
        message = member(choice, "message", dict)
        if message is None:
            raise ValueError("`choices` holds no message with index 0")
        self._read_choice(choice, as_delta(message))

    def _is_aside(self, name: str, data: str) -> bool:
        """An event with a name: is it a keep-alive? Raises where it is an error."""
        if name == "error":
            self._chunks += 1
            raise provider_error(error_event(data), self.text)
        return name in KEEP_ALIVES

    def _in_one_event(self, choice: dict[str, Any]) -> dict[str, Any]:
        """The message of a server that streams it as a single event; {} for one that
        only repeats what came before, or that is still growing."""
        if self.opened or not choice.get("finish_reason"):
            return {}
        return as_delta(member(choice, "message", dict) or {})

    def _read_frame(self, chunk: dict[str, Any]) -> dict[str, Any]:
        """All but the choices; returns choice 0, or {} where there is none."""
        error = chunk.get("error")
        if error or "error" in (chunk.get("object"), chunk.get("type")):
            raise provider_error(error or chunk, self.text)
        if not self.id and isinstance(chunk.get("id"), str):
            self.id = mend(chunk["id"])
        if chunk.get("usage"):
            self.usage = Usage.read(chunk["usage"]) or self.usage
        for choice in member(chunk, "choices", list) or []:
            if not member(as_object(choice), "index", int):  # 0, null or absent
                return choice
        return {}

    def _read_choice(self, choice: dict[str, Any], delta: dict[str, Any]) -> str:
        """The delta of choice 0. The text comes last, so that an error before it
        never leaves text behind that was not given out."""
        content = member(delta, "content", str) or ""
        calls = member(delta, "tool_calls", list) or []
        reason = member(choice, "finish_reason", str) or ""
        reason = "" if reason in NO_REASON else reason
        if choice.get("error") or reason == "error":
            told = choice.get("error") or "finish_reason is error"
            raise provider_error(told, self.text)
        called = sum(self._calls.add(as_object(call)) for call in calls)
        self._grow(len(content) + called)
        if reason and self.finish_reason not in CUT:
            self.finish_reason = mend(reason)
        self.signs += bool(content) + bool(called) + bool(reason)
        self.signs += not content and any(map(delta.get, ASIDES))
        return self._give_out(content)

    def _grow(self, characters: int) -> None:
        """Memory stays bounded, however long the model goes on."""
        self._size += characters
        if self._size > ANSWER_LIMIT:
            raise MalformedStream(
                f"the answer is longer than {ANSWER_LIMIT} characters: set max_tokens",
                partial=self.text,
            )

    def _give_out(self, content: str) -> str:
        """`content` as text that can be encoded: no half characters."""
        text = self._half + content
        self._half = ""
        if self.finish_reason is None and "\ud800" <= text[-1:] <= "\udbff":
            text, self._half = text[:-1], text[-1]
        text = mend(text)
        if text:
            self._pieces.append(text)
        return text


def read_stream(chunks: Iterable[bytes]) -> Assembler:
    """The whole reply in the body `chunks`, cut in any way.

    Raises the StreamErrors of the decoder and the assembler, each with the text so
    far as `partial`. Stops at `[DONE]`.
    """
    decoder, reply = SSEDecoder(), Assembler()
    try:
        for event in (event for chunk in chunks for event in decoder.feed(chunk)):
            reply.add(event)
            if reply.done:
                break
        reply.finish(decoder.close())
    except StreamError as error:
        error.partial = reply.text
        raise
    return reply
