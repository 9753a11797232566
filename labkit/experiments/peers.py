"""Chapter 14, beside the rule: what another client makes of the same endings."""

import importlib.util

import pandas as pd

from labkit.errors import ConfigError
from labkit.experiments.stage import QUESTION, Stage, perform
from labkit.experiments.streaming import ENDINGS
from labkit.http import httpx
from mock.provider import Settings

COLUMNS = ["ending", "raised", "chunks", "finish_reason", "text"]


def sdk_installed() -> bool:
    """Is the official OpenAI SDK here? labkit itself does not need it."""
    return importlib.util.find_spec("openai") is not None


async def read_with_sdk(base_url: str, http: httpx.AsyncClient) -> dict:
    """One streamed answer through the SDK, read in the usual way: loop to the end."""
    import openai

    text, chunks, reason, raised = "", 0, "", ""
    client = openai.AsyncOpenAI(
        base_url=base_url, api_key="unused", max_retries=0, http_client=http
    )
    asked = [{"role": "user", "content": QUESTION}]
    try:
        stream = await client.chat.completions.create(
            model="mock", messages=asked, stream=True
        )
        async for chunk in stream:
            choice = chunk.choices[0]
            text += choice.delta.content or ""
            chunks += bool(choice.delta.content)
            reason = choice.finish_reason or reason
    except (openai.OpenAIError, httpx.TransportError) as error:
        raised = type(error).__name__
    return {"raised": raised, "chunks": chunks, "finish_reason": reason, "text": text}


def sdk_endings(delay_ms: float = 20.0) -> pd.DataFrame:
    """The three endings as the SDK tells them, columns as `streaming.endings`.

    On real sockets only: the SDK works with threads, which a virtual clock refuses.
    Nothing here depends on how long anything takes. Raises ConfigError where the SDK
    is not installed.
    """
    if not sdk_installed():
        raise ConfigError("openai is not installed: pip install openai", field="openai")

    async def scene(stage: Stage) -> list[dict]:
        rows = []
        for ending, fault in ENDINGS.items():
            async with stage.http() as http:
                seen = await read_with_sdk(stage.url(fault), http)
            rows.append({"ending": ending} | seen)
        return rows

    rows = perform("real", scene, Settings(delay_ms=delay_ms))
    return pd.DataFrame(rows, columns=COLUMNS)
