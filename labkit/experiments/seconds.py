"""Chapter 23, latency: where the seconds of a run go, and what a trace says of them."""

import os
import time

import pandas as pd

from labkit.cancel import Stop
from labkit.client import ChatClient
from labkit.clock import run_real
from labkit.experiments.agents import Ended, begin, columns, play
from labkit.experiments.seeds import sweep
from labkit.experiments.stage import Stage, perform
from labkit.harness import new_run, run
from labkit.localmodel import model_file, start_local_model
from labkit.retry import Retry
from labkit.trace import MemoryTrace
from labkit.workspace import SYSTEM, Workspace
from mock.provider import Settings

LATENCIES_MS = (0, 250, 1000, 2000)


def latency(
    latencies_ms: tuple[int, ...] = LATENCIES_MS, clock: str = "virtual"
) -> pd.DataFrame:
    """The run of three turns, by the provider's time to the first token.

    added_ms: what is not the provider's, for the whole run.
    """

    async def scene(stage: Stage) -> tuple[Ended, float]:
        began = stage.time()
        ended = await play(stage, "plan")
        return ended, (stage.time() - began) * 1000

    rows = []
    for each in latencies_ms:
        settings = Settings(capacity=None, delay_ms=0, first_ms=each)
        ended, wall_ms = perform(clock, scene, settings, kind="scripted")
        turns = ended.state.turns
        row = {"latency_ms": each, "turns": turns, "wall_ms": round(wall_ms, 3)}
        rows.append(row | {"added_ms": round(wall_ms - turns * each, 3)})
    return pd.DataFrame(rows)


def twenty_turns(seed: int, fail_rate: float, tries: int, clock: str) -> dict:
    """One run of twenty turns over a provider that fails at random."""
    settings = Settings(capacity=None, delay_ms=0, fail_rate=fail_rate)

    async def scene(stage: Stage) -> dict:
        ended = await play(stage, "long", retry=Retry(attempts=tries))
        finished = ended.state.status == "completed"
        return {"finished": finished, "requests": stage.stats()["requests"]}

    return perform(clock, scene, settings, kind="scripted", seed=seed)


def flaky(
    fail_rate: float = 0.05, seeds: int = 200, clock: str = "virtual"
) -> pd.DataFrame:
    """Twenty turns over a provider that fails one call in twenty, with one try a turn
    and with three. `expected_percent`: what the arithmetic says."""
    cases = [{"fail_rate": fail_rate, "tries": t, "clock": clock} for t in (1, 3)]
    runs = sweep(twenty_turns, cases, seeds, "flaky provider")
    rows = []
    for case, asked in enumerate(cases):
        own, tries = runs[runs.case == case], asked["tries"]
        rows.append(
            {
                "tries": tries,
                "runs": len(own),
                "finished_percent": round(100 * float(own.finished.mean()), 3),
                "expected_percent": round(100 * (1 - fail_rate**tries) ** 20, 3),
                "requests": round(float(own.requests.mean()), 3),
            }
        )
    return pd.DataFrame(rows)


def trace(clock: str = "virtual") -> pd.DataFrame:
    """Every event of two runs, in order: one that waits for a person (n1), and one
    with a slow tool (n2)."""

    async def scene(stage: Stage) -> list[dict]:
        events = MemoryTrace()
        for run_id, scenario in (("n1", "destructive"), ("n2", "slow")):
            state = begin(scenario, run_id)
            await play(stage, scenario, state=state, trace=events, stop=Stop())
        return events.events

    frame = pd.DataFrame(perform(clock, scene, kind="scripted"))
    frame.insert(0, "event", range(1, len(frame) + 1))
    counts = ["turn", "prompt_tokens", "completion_tokens", "total_tokens", "turns"]
    return frame.astype(dict.fromkeys(counts, "Int64"))


TASKS = (
    "Which file mentions a timeout?",
    "How many files are there?",
    "Read notes.txt and say what it tells you.",
    "List the files, then read each of them.",
    "Which file is the largest?",
    "Does any file speak of rotating logs?",
)

MOST_TOKENS = 120  # a turn: the small model does not always find its end
COUNTS = ("turns", "tool_runs", "prompt_tokens", "completion_tokens", "wall_ms")


class Brief(ChatClient):
    """A client that allows only so many tokens for a turn."""

    def stream(self, messages, **body):
        return super().stream(messages, max_tokens=MOST_TOKENS, **body)


def local_model(clock: str = "real", tasks: tuple[str, ...] = TASKS) -> pd.DataFrame:
    """Six tasks for a real model: whatever LLM_BASE_URL names (and LLM_MODEL, its
    name), else the small one of `make setup-local`. Answers as they are, but those
    of the small one are cut at MOST_TOKENS."""
    if os.environ.get("LLM_BASE_URL"):
        return _ask_each(tasks, os.environ["LLM_BASE_URL"], ChatClient)
    if model_file() is None:
        return pd.DataFrame()
    with start_local_model() as model:
        return _ask_each(tasks, model.url, Brief)


def _ask_each(tasks: tuple[str, ...], url: str, kind: type) -> pd.DataFrame:
    name = os.environ.get("LLM_MODEL", "local")

    async def ask(task: str) -> dict:
        state, workspace = new_run(name, task, SYSTEM), Workspace()
        began = time.perf_counter()
        async with kind(url, model=name) as client:
            await run(state, workspace.tools(), client)
        wall_ms = (time.perf_counter() - began) * 1000
        row = columns(Ended(state, workspace, MemoryTrace()))
        row |= {"wall_ms": round(wall_ms), "error": state.error or ""}
        return {"task": task} | {k: v for k, v in row.items() if k != "cost_usd"}

    rows = [run_real(ask, task) for task in tasks]
    total = {"task": f"all {len(rows)} ({name})", "answer": "", "status": ""}
    for column in COUNTS:
        total[column] = sum(row[column] for row in rows)
    frame = pd.DataFrame([*rows, total])
    return frame.assign(mean_turn_ms=(frame.wall_ms / frame.turns).round())
