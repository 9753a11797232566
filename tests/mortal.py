"""A process that lives a run until it is killed, at whichever point it is told to.

`python -m tests.mortal` reads one job (a JSON line) at a time and forks for each, so
that a life costs milliseconds and not the start of an interpreter. A point is the
moment after an effect, which is the one before the next: a save, the beginning of an
answer, its end, a tool. Or it is killed from outside after some time, wherever it is.
"""

import asyncio
import json
import os
import signal
import sys
import time
from contextlib import asynccontextmanager
from pathlib import Path

from labkit.client import ChatClient
from labkit.harness import approve, new_run, resolve, run
from labkit.retry import Retry
from labkit.store import RunStore
from labkit.subagent import subagent
from labkit.tools import NO_PARAMETERS, Tool
from labkit.trace import Trace

MODEL = "plan"  # a priced name; the script is the test's own


class Death:
    """Counts the points of a life, and kills it at one of them."""

    def __init__(self, kill_at: int | None):
        self.points, self._kill_at = 0, kill_at

    def point(self) -> None:
        self.points += 1
        if self.points == self._kill_at:
            os.kill(os.getpid(), signal.SIGKILL)


class MortalStore(RunStore):
    def __init__(self, folder, death: Death):
        super().__init__(folder)
        self._death = death

    def save(self, state) -> None:
        super().save(state)
        self._death.point()


class MortalClient:
    def __init__(self, client: ChatClient, death: Death):
        self._client, self._death = client, death

    @asynccontextmanager
    async def stream(self, *args, **kwargs):
        async with self._client.stream(*args, **kwargs) as stream:
            self._death.point()  # the answer has begun
            yield stream
        self._death.point()


class World:
    """What the tools have done, on disk: it outlives them."""

    def __init__(self, folder: Path, death: Death):
        self._file, self._death = folder / "world.log", death

    def did(self) -> list[str]:
        return self._file.read_text().split() if self._file.exists() else []

    def tool(self, name: str, **flags) -> Tool:
        async def act(args, context):
            with self._file.open("a") as file:
                file.write(f"{name}:{context.run_id}.{context.call_id}\n")
            self._death.point()
            return f"{name} is done"

        return Tool(name, f"Does {name}.", NO_PARAMETERS, act, **flags)

    def tools(self, client) -> list[Tool]:
        look = self.tool("look", read_only=True)
        note, rm = self.tool("note"), self.tool("rm", needs_approval=True)
        about = "Investigate one question."
        inner = subagent("research", about, [look, note, rm], client, model="long")
        return [look, rm, inner]


def decide(state, world: World) -> bool:
    """The person: allows what is asked for; in doubt, looks at what the world says."""
    about = state.interruption or {}
    if about.get("type") == "approval":
        approve(state, about["call_id"])
    elif about.get("type") == "in_doubt":
        tool, id = about["tool_name"], about["call_id"]
        ran = f"{tool}:{about['run_id']}.{id}" in world.did()
        resolve(state, id, ran=ran, result=f"{tool} is done")
    else:
        return False
    return True


async def live(folder: str, run_id: str, url: str, kill_at: int | None) -> int:
    """One life: from where the last one ended, to the end of the run or of itself."""
    death, path = Death(kill_at), Path(folder)
    store, world = MortalStore(path, death), World(path, death)
    known = store.path(run_id).exists()
    state = store.load(run_id) if known else new_run(MODEL, "hi", run_id=run_id)
    async with ChatClient(url, retry=Retry(idempotent=True)) as client:
        mortal = MortalClient(client, death)
        tools, trace = world.tools(mortal), Trace(path / "trace.jsonl")
        await run(state, tools, mortal, store=store, trace=trace)
        while decide(state, world):
            store.save(state)
            await run(state, tools, mortal, store=store, trace=trace)
    return death.points


def work(job: dict) -> None:
    """In the fork: live, write down how many points there were, and be gone."""
    status = 1
    try:
        points = asyncio.run(live(**job))
        (Path(job["folder"]) / "points").write_text(str(points))
        status = 0
    finally:
        sys.stderr.flush()
        os._exit(status)


def main() -> None:
    for line in sys.stdin:
        job = json.loads(line)
        after_s = job.pop("kill_after_s", None)
        child = os.fork()
        if not child:
            work(job)
        if after_s is not None:
            time.sleep(after_s)
            os.kill(child, signal.SIGKILL)  # nothing, if it has come to its end
        _, status = os.waitpid(child, 0)
        print(os.waitstatus_to_exitcode(status), flush=True)


if __name__ == "__main__":
    main()
