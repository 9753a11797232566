"""Chapter 14, the reader: three details, and what happens without each of them.

Each reader here takes the chunks of a body and returns the text of the answer. They
are what people write first; labkit's own is in `labkit.sse`.
"""

import codecs
import json
import random
from collections.abc import Callable, Iterable

import pandas as pd

from labkit.assemble import read_stream
from labkit.errors import StreamError
from mock.hostile import ANSWERS
from mock.plan import Plan
from mock.wire import compact, encode


def text_of(event: str) -> str:
    """The content in one event: its `data:` lines, one by one, as JSON."""
    text = ""
    for line in event.split("\n"):
        payload = line.removeprefix("data:").strip()
        if line.startswith("data:") and payload != "[DONE]":
            choice = json.loads(payload)["choices"][0]
            text += choice["delta"].get("content", "")
    return text


def all_three(chunks: Iterable[bytes]) -> str:
    """The chapter's reader: a buffer, a decoder that remembers, and events that end
    at a blank line. It knows one line end, LF, and JSON on one line."""
    decoder = codecs.getincrementaldecoder("utf-8")()
    buffer = text = ""
    for chunk in chunks:
        buffer += decoder.decode(chunk)
        while "\n\n" in buffer:
            event, _, buffer = buffer.partition("\n\n")
            text += text_of(event)
    return text


def without_buffer(chunks: Iterable[bytes]) -> str:
    """As if each chunk were a whole number of events."""
    decoder = codecs.getincrementaldecoder("utf-8")()
    return "".join(text_of(decoder.decode(chunk)) for chunk in chunks)


def without_memory(chunks: Iterable[bytes]) -> str:
    """Each chunk decoded alone: half a character becomes U+FFFD, silently."""
    buffer = text = ""
    for chunk in chunks:
        buffer += chunk.decode("utf-8", errors="replace")
        while "\n\n" in buffer:
            event, _, buffer = buffer.partition("\n\n")
            text += text_of(event)
    return text


def without_blank_line(chunks: Iterable[bytes]) -> str:
    """As if each line were an event."""
    decoder = codecs.getincrementaldecoder("utf-8")()
    buffer = text = ""
    for chunk in chunks:
        buffer += decoder.decode(chunk)
        while "\n" in buffer:
            line, _, buffer = buffer.partition("\n")
            text += text_of(line)
    return text


def labkit_reader(chunks: Iterable[bytes]) -> str:
    """The reader of this package: the standard's rules."""
    return read_stream(chunks).text


READERS: dict[str, Callable[[Iterable[bytes]], str]] = {
    "the chapter's: all three": all_three,
    "without the buffer": without_buffer,
    "without streaming decode": without_memory,
    "without the blank line": without_blank_line,
    "labkit": labkit_reader,
}
BODIES = {
    "lf": Plan(),
    "crlf": Plan(lines="crlf"),
    "several data lines": Plan(split=True),
}


def body(plan: Plan = Plan(), answer: str = "accent") -> bytes:
    """An answer as mock would write it, in one piece."""
    chunks = [
        {"id": "cmpl_1", "choices": [{"index": 0, "delta": d, "finish_reason": None}]}
        for d in ANSWERS[answer].deltas
    ]
    last = {"index": 0, "delta": {}, "finish_reason": "stop"}
    chunks.append({"id": "cmpl_1", "choices": [last]})
    return b"".join(encode(compact(c), plan) for c in chunks) + encode("[DONE]", plan)


def cut(whole: bytes, cuts: int, rng: random.Random) -> list[bytes]:
    """The body in `cuts` + 1 chunks, cut anywhere."""
    at = [0, *sorted(rng.sample(range(1, len(whole)), cuts)), len(whole)]
    return [whole[a:b] for a, b in zip(at, at[1:], strict=False)]


def reader(runs: int = 1000, cuts: int = 5, seed: int = 0) -> pd.DataFrame:
    """How often each reader gets the answer wrong, over random cuts of the body.

    wrong: another text, in silence; raised: an exception; both as shares of `runs`.
    """
    rows = []
    right = "".join(delta["content"] for delta in ANSWERS["accent"].deltas)
    for name, plan in BODIES.items():
        whole = body(plan)
        for label, read in READERS.items():
            rng = random.Random(seed)  # the same cuts for every reader
            outcomes = [
                _outcome(read, cut(whole, cuts, rng), right) for _ in range(runs)
            ]
            rows.append(
                {
                    "reader": label,
                    "body": name,
                    "cuts": cuts,
                    "runs": runs,
                    "wrong": outcomes.count("wrong") / runs,
                    "raised": outcomes.count("raised") / runs,
                }
            )
    return pd.DataFrame(rows)


def _outcome(read, chunks: list[bytes], right: str) -> str:
    try:
        return "right" if read(chunks) == right else "wrong"
    except (ValueError, TypeError, LookupError, StreamError):
        return "raised"
