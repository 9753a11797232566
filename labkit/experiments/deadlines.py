"""Chapter 14, deadlines: how long does a client wait for a server that never answers?

Two clients are fired at full length, on the virtual clock. The others bring sockets
and threads of their own, which take real time: their default is read from the
installed library, and on the real clock it is fired shortened.
"""

import asyncio
import importlib
import inspect
import time
from importlib.metadata import version

import pandas as pd

from labkit.errors import DeadlineError
from labkit.experiments.stage import ONCE, QUESTION, Stage, perform
from labkit.http import httpx
from labkit.limits import Limits
from labkit.server import start_server

SHORTENED_S = 0.5
COLUMNS = [
    "client",
    "default_s",
    "attempts",
    "how_measured",
    "gave_up_after_s",
    "error",
    "skipped",
]


def deadline(total_s: float = 5.0, clock: str = "virtual") -> pd.DataFrame:
    """What each Python client does against a server that hangs.

    default_s: its own limit for one attempt, in seconds; empty: it waits for ever.
    attempts: how often it asks by itself. gave_up_after_s: of all attempts together.
    """
    rows = perform(clock, _fired, total_s=total_s)
    for name, (read_default, fire) in LIBRARIES.items():
        rows.append(_library(name, read_default, fire, clock))
    return pd.DataFrame(rows, columns=COLUMNS)


async def _fired(stage: Stage, total_s: float) -> list[dict]:
    """The clients that can be fired at full length on either clock."""
    fired = [
        await _labkit(stage, f"labkit, total_s={total_s:g}", Limits(total_s=total_s)),
        await _httpx(stage),
    ]
    if stage.virtual:
        fired.insert(1, await _labkit(stage, "labkit, as it comes", Limits()))
    return fired


async def _labkit(stage: Stage, label: str, limits: Limits) -> dict:
    began = asyncio.get_running_loop().time()
    error = None
    async with stage.client("hang", limits=limits, retry=ONCE) as client:
        try:
            await client.complete(QUESTION)
        except DeadlineError as ran_out:
            error = ran_out
    first = min(limits.open_s, limits.total_s)
    return _row(label, first, 1, "fired", began, f"DeadlineError ({error.limit}_s)")


async def _httpx(stage: Stage) -> dict:
    began = asyncio.get_running_loop().time()
    said = ""
    async with stage.http() as http:
        try:
            await http.post(f"{stage.url('hang')}/chat/completions", json=BODY)
        except httpx.TimeoutException as error:
            said = type(error).__name__
        default = http.timeout.read
    return _row(f"httpx {version('httpx')}", default, 1, "fired", began, said)


def _row(client, default_s, attempts, how, began, error) -> dict:
    took_s = asyncio.get_running_loop().time() - began
    return {
        "client": client,
        "default_s": default_s,
        "attempts": attempts,
        "how_measured": how,
        "gave_up_after_s": round(took_s, 3),
        "error": error,
    }


BODY = {"messages": [{"role": "user", "content": QUESTION}]}


# Each library: its default for one attempt (seconds or None) with its attempts, and
# how to fire it shortened at a URL.


def _requests_default():
    import requests

    return inspect.signature(requests.Session.request).parameters["timeout"].default, 1


def _fire_requests(url: str) -> None:
    import requests

    with requests.Session() as session:
        session.trust_env = False
        session.post(f"{url}/chat/completions", json=BODY, timeout=SHORTENED_S)


def _urllib_default():
    import socket

    return socket.getdefaulttimeout(), 1


def _fire_urllib(url: str) -> None:
    from urllib import request

    opener = request.build_opener(request.ProxyHandler({}))
    opener.open(f"{url}/chat", timeout=SHORTENED_S)


def _aiohttp_default():
    import aiohttp.client

    return aiohttp.client.DEFAULT_TIMEOUT.total, 1


def _fire_aiohttp(url: str) -> None:
    import aiohttp

    async def ask():
        limit = aiohttp.ClientTimeout(total=SHORTENED_S)
        async with aiohttp.ClientSession(timeout=limit) as session:
            await session.post(f"{url}/chat/completions", json=BODY)

    asyncio.run(ask())


def _openai_default():
    import openai

    return openai.DEFAULT_TIMEOUT.read, 1 + openai.DEFAULT_MAX_RETRIES


def _fire_openai(url: str) -> None:
    import openai

    with openai.OpenAI(base_url=url, api_key="none", timeout=SHORTENED_S) as client:
        client.chat.completions.create(model="mock", messages=BODY["messages"])


LIBRARIES = {
    "requests": (_requests_default, _fire_requests),
    "urllib": (_urllib_default, _fire_urllib),
    "aiohttp": (_aiohttp_default, _fire_aiohttp),
    "openai": (_openai_default, _fire_openai),
}


def _library(name: str, read_default, fire, clock: str) -> dict:
    try:
        importlib.import_module(name)
    except ImportError:
        return {"client": name, "skipped": f"{name} is not installed (extra dev)"}
    default_s, attempts = read_default()
    label = name if name == "urllib" else f"{name} {version(name)}"
    row = {"client": label, "default_s": default_s, "attempts": attempts}
    if clock == "virtual":
        return row | {"how_measured": "default read from the library"}
    return row | _fire_shortened(fire)


def _fire_shortened(fire) -> dict:
    """Fire with a limit of half a second, at a socket that never answers."""
    said = ""
    with start_server("hostile", capacity=100) as server:
        began = time.perf_counter()
        try:
            fire(server.at("hang"))
        except Exception as error:  # whatever this library calls it
            said = type(error).__name__
        took_s = time.perf_counter() - began
    return {
        "how_measured": f"fired shortened to {SHORTENED_S} s an attempt",
        "gave_up_after_s": round(took_s, 3),
        "error": said,
    }
