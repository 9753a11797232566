"""The harness against a loop written by hand over httpx: what does all of it cost?

Both drive the scripted provider over a socket, and only this process's CPU counts.
"""

import asyncio
import gc
import json
import statistics
import tempfile
from pathlib import Path

from labkit.bench.figure import Figure, cpu_s
from labkit.cancel import Stop
from labkit.client import ChatClient
from labkit.conditions import RunLimits, context_size
from labkit.harness import new_run, run
from labkit.http import httpx
from labkit.server import Server, start_server
from labkit.store import RunStore
from labkit.tools import Tool, ToolContext, as_text, catalogue
from labkit.trace import Trace
from labkit.workspace import SYSTEM, TASK, Workspace, opening

RUNS = 60
FAR = 10**9  # a limit that is looked at and never reached


async def post(http: httpx.AsyncClient, url: str, body: dict) -> dict:
    """The message of a turn, whole."""
    answer = await http.post(f"{url}/chat/completions", json=body)
    return answer.json()["choices"][0]["message"]


async def stream(http: httpx.AsyncClient, url: str, body: dict) -> dict:
    """The message of a turn, streamed: as little code as will do."""
    text, calls = "", []
    body = body | {"stream": True}
    async with http.stream("POST", f"{url}/chat/completions", json=body) as answer:
        async for line in answer.aiter_lines():
            if not line.startswith("data: {"):
                continue
            delta = json.loads(line[6:])["choices"][0]["delta"]
            text += delta.get("content") or ""
            for part in delta.get("tool_calls", ()):
                if "id" in part:
                    calls.append(part)
                else:
                    more = part["function"]["arguments"]
                    calls[-1]["function"]["arguments"] += more
    for call in calls:
        del call["index"]
    message = {"role": "assistant", "content": text or None}
    return message | ({"tool_calls": calls} if calls else {})


async def by_hand(
    ask, http: httpx.AsyncClient, url: str, scenario: str, tools: list[Tool], turns: int
) -> None:
    """What one writes first: ask, run the tools, ask again."""
    by_name, described = {tool.name: tool for tool in tools}, catalogue(tools)
    messages = opening()
    for _ in range(turns):
        body = {"model": scenario, "messages": messages, "tools": described}
        message = await ask(http, url, body)
        messages.append(message)
        if not message.get("tool_calls"):
            return
        for call in message["tool_calls"]:
            name, arguments = call["function"]["name"], call["function"]["arguments"]
            result = await by_name[name].run(json.loads(arguments), ToolContext())
            messages.append(
                {"role": "tool", "tool_call_id": call["id"], "name": name}
                | {"content": as_text(result)}
            )


async def everything(
    client: ChatClient, scenario: str, tools: list[Tool], turns: int,
    trace: Trace, store: RunStore | None = None,
) -> None:  # fmt: skip
    """The harness with a budget, a Stop, dedupe, a stop condition and a trace."""
    await run(
        new_run(scenario, TASK, SYSTEM), tools, client,
        limits=RunLimits(max_turns=turns, max_budget_usd="1000"), stop=Stop(),
        stop_conditions=[context_size(FAR)], dedupe=True, trace=trace, store=store,
    )  # fmt: skip


def against_a_hand_loop() -> list[Figure]:
    """Three turns: the ratio to the loop by hand, run by run, its median."""

    async def measure(server: Server, folder: Path) -> list[list[float]]:
        tools = Workspace().tools()
        trace, store = Trace(folder / "trace.jsonl"), RunStore(folder)
        async with (
            httpx.AsyncClient(trust_env=False, verify=False) as http,
            ChatClient(server.url) as client,
        ):
            ways = [
                lambda: by_hand(post, http, server.url, "plan", tools, 20),
                lambda: by_hand(stream, http, server.url, "plan", tools, 20),
                lambda: everything(client, "plan", tools, 20, trace),
                lambda: everything(client, "plan", tools, 20, trace, store),
            ]
            for way in ways:
                await way()  # connections, imports
            return [[await cpu_s(way) for way in ways] for _ in range(RUNS)]

    with start_server("scripted") as server, tempfile.TemporaryDirectory() as folder:
        rows = asyncio.run(measure(server, Path(folder)))
    comparisons = (
        ("all but saving", 2, "a loop by hand", 0, "goal: at most 1.5"),
        ("atomic saves", 3, "a loop by hand", 0, "goal: at most 2"),
        ("all but saving", 2, "one by hand that streams too", 1, ""),
    )
    return [
        Figure(
            f"the harness with {what}, as many times the CPU of {other}",
            f"{statistics.median(row[ours] / row[theirs] for row in rows):.2f}",
            goal,
        )
        for what, ours, other, theirs, goal in comparisons
    ]


def flat() -> list[Figure]:
    """Does a turn cost more in a long run?"""

    async def measure(server: Server, folder: Path) -> float:
        tools, trace = Workspace().tools(), Trace(folder / "trace.jsonl")
        per_turn = {20: [], 100: []}
        async with ChatClient(server.url) as client:
            await everything(client, "runaway", tools, 5, trace)
            for _ in range(10):
                for turns, found in per_turn.items():
                    gc.collect()  # what the run before has left is not this one's
                    took_s = await cpu_s(
                        lambda n=turns: everything(client, "runaway", tools, n, trace)
                    )
                    found.append(took_s / turns)
        return min(per_turn[100]) / min(per_turn[20])

    with start_server("scripted") as server, tempfile.TemporaryDirectory() as folder:
        ratio = asyncio.run(measure(server, Path(folder)))
    what = "CPU of a turn in a run of 100 turns, over that in one of 20"
    return [Figure(what, f"{ratio:.2f}", "goal: at most 1.3")]


MEASURES = [against_a_hand_loop, flat]
