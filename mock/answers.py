"""What the provider says: an answer is a list of deltas and a reason to end."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from mock.plan import Plan


@dataclass(frozen=True, slots=True)
class Answer:
    """`deltas` in the order they are sent, each one token and one event.

    With a `length` they are said over and over, or not to the end: an answer of a
    million tokens takes no more memory than one of thirteen.

    >>> long = words("ha ha").of_length(1_000_000)
    >>> len(long), "".join(delta["content"] for delta in long.first(3))
    (1000000, 'ha haha')
    """

    deltas: tuple[dict, ...]
    finish_reason: str = "stop"
    length: int | None = None  # in tokens; None: each delta once

    def __len__(self) -> int:
        return len(self.deltas) if self.length is None else self.length

    def __getitem__(self, at: int) -> dict:
        return self.deltas[at % len(self.deltas)]

    def first(self, tokens: int) -> Iterator[dict]:
        """The deltas of the first so many tokens."""
        return (self[at] for at in range(tokens))

    def cut_to(self, max_tokens: int | None) -> "Answer":
        """What is left under a limit. Cut short, it ends with `length`."""
        if max_tokens is None or max_tokens >= len(self):
            return self
        return replace(self, length=max_tokens, finish_reason="length")

    def of_length(self, tokens: int | None) -> "Answer":
        """The same deltas over and over until there are `tokens` of them."""
        return self if tokens is None else replace(self, length=tokens)


def words(text: str) -> Answer:
    """One token a word, with its space in front, as the chapter's provider has it.

    >>> [delta["content"] for delta in words("A tide gauge").deltas]
    ['A', ' tide', ' gauge']
    """
    first, *rest = text.split(" ")
    pieces = [first, *(f" {word}" for word in rest)]
    return Answer(tuple({"content": piece} for piece in pieces))


def tool_call(name: str, arguments: str, pieces: int = 4) -> Answer:
    """A call as providers stream it: id and name first, the arguments in pieces."""
    size = -(-len(arguments) // pieces)
    empty = {"name": name, "arguments": ""}
    calls = [{"id": "call_1", "type": "function", "function": empty}] + [
        {"function": {"arguments": arguments[at : at + size]}}
        for at in range(0, len(arguments), size)
    ]
    return Answer(
        tuple({"tool_calls": [{"index": 0, **call}]} for call in calls), "tool_calls"
    )


@dataclass(frozen=True, slots=True)
class Model:
    """Who answers: the names it goes by, and what it makes of a request and its plan.

    `answer` may raise `mock.incoming.Refusal`.
    """

    names: tuple[str, ...]
    answer: Callable[[dict, Plan], Answer]


def message(deltas) -> dict:
    """The deltas as the one message of a reply that is not streamed."""
    content = "".join(delta.get("content", "") for delta in deltas)
    calls: list[dict] = []
    for part in (part for delta in deltas for part in delta.get("tool_calls", ())):
        if "id" in part:
            calls.append({**part, "function": dict(part["function"])})
            del calls[-1]["index"]
        else:
            calls[-1]["function"]["arguments"] += part["function"]["arguments"]
    if calls:
        return {"role": "assistant", "content": content or None, "tool_calls": calls}
    return {"role": "assistant", "content": content}
