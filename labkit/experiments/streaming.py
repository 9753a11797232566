"""Chapter 14, streaming: when the first word comes, and how an answer ends."""

import asyncio

import pandas as pd

from labkit.assemble import Assembler
from labkit.errors import StreamError
from labkit.experiments.stage import QUESTION, Stage, perform
from labkit.http import httpx
from labkit.sse import SSEDecoder
from mock.provider import Settings

TOKENS = 13
COLUMNS = ["mode", "first_visible_ms", "complete_ms", "finish_reason"]


def ttft(delay_ms: float = 60.0, clock: str = "virtual") -> pd.DataFrame:
    """The same answer asked for whole and as a stream: first word and last, in ms."""

    async def scene(stage: Stage) -> list[dict]:
        async with stage.client() as client:
            await client.complete(QUESTION)  # opens the connection for both
            whole = await client.complete(QUESTION)
            async with client.stream(QUESTION) as stream:
                async for _ in stream:
                    pass
        return [_timed("blocking", whole), _timed("streaming", stream.reply)]

    rows = perform(clock, scene, Settings(delay_ms=delay_ms))
    return pd.DataFrame(rows)[COLUMNS]


def _timed(mode: str, reply) -> dict:
    return {
        "mode": mode,
        "first_visible_ms": round(reply.timings.first_token_s * 1000, 3),
        "complete_ms": round(reply.timings.complete_s * 1000, 3),
        "finish_reason": reply.finish_reason,
    }


def arrivals(
    delay_ms: float = 60.0, fault: str = "", clock: str = "virtual"
) -> pd.DataFrame:
    """One row a piece of the answer: t_ms since the question, and its text.

    The last row says how it ended: its text is empty, `ended` is the finish_reason,
    or the name of the error.
    """

    async def scene(stage: Stage) -> list[dict]:
        time = asyncio.get_running_loop().time
        rows, began = [], time()
        async with stage.client(fault) as client:
            try:
                async with client.stream(QUESTION) as stream:
                    async for text in stream:
                        rows.append({"t_ms": (time() - began) * 1000, "text": text})
                ended = stream.reply.finish_reason
            except StreamError as error:
                ended = type(error).__name__
            rows.append({"t_ms": (time() - began) * 1000, "text": "", "ended": ended})
        return rows

    rows = perform(clock, scene, Settings(delay_ms=delay_ms))
    return pd.DataFrame(rows, columns=["t_ms", "text", "ended"]).round({"t_ms": 3})


ENDINGS = {
    "max_tokens=5": "max_tokens=5",
    "closed in order": "cut=5,how=close",
    "reset": "cut=5,how=reset",
}


def endings(delay_ms: float = 60.0, clock: str = "virtual") -> pd.DataFrame:
    """Three endings: what a reader without a rule sees, and what labkit says."""

    async def scene(stage: Stage) -> list[dict]:
        return [
            {"ending": ending}
            | await _read_naively(stage, fault)
            | {"labkit_says": await _ask_labkit(stage, fault)}
            for ending, fault in ENDINGS.items()
        ]

    return pd.DataFrame(perform(clock, scene, Settings(delay_ms=delay_ms)))


async def _read_naively(stage: Stage, fault: str) -> dict:
    """Loop until the body ends, as most first readers do."""
    decoder, answer, chunks, raised = SSEDecoder(), Assembler(), 0, ""
    async with stage.http() as http:
        body = {"messages": [{"role": "user", "content": QUESTION}], "stream": True}
        url = f"{stage.url(fault)}/chat/completions"
        try:
            async with http.stream("POST", url, json=body) as response:
                async for piece in response.aiter_bytes():
                    for event in decoder.feed(piece):
                        chunks += bool(answer.add(event))
        except httpx.TransportError as error:
            raised = type(error).__name__
    return {
        "raised": raised,
        "chunks": chunks,
        "finish_reason": answer.finish_reason or "",
        "text": answer.text,
    }


async def _ask_labkit(stage: Stage, fault: str) -> str:
    """The finish_reason of a finished answer, or the error and its partial text."""
    async with stage.client(fault) as client:
        try:
            async with client.stream(QUESTION) as stream:
                async for _ in stream:
                    pass
            return f"finished: {stream.reply.finish_reason}"
        except StreamError as error:
            return f"{type(error).__name__}: {error.partial!r}"
