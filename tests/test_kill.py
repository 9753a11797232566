"""Kill it anywhere: SIGKILL at every point of a run, and the restart finishes it as if
nothing had happened. The provider is a real one on a socket, and outlives the lives.

The run has a read, an approved write, two calls in one turn, and a subagent with a
read, a write and an approved write of its own.
"""

import asyncio
import json
import os
import subprocess
import sys
import threading
from collections import Counter
from pathlib import Path

import pytest

from labkit.conditions import unpriced_turns
from labkit.store import RunStore
from labkit.trace import records
from mock.answers import Model, words
from mock.provider import Provider, Settings
from mock.scripted import asks, call
from mock.sockets import SocketDoor

ROOT = Path(__file__).resolve().parent.parent
WRITES = ["rm:{}.c3", "note:{}.c4.k2", "rm:{}.c4.k3"]

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")

SCRIPTS = {
    "plan": [
        asks(call("c1", "look")),
        asks(call("c2", "look"), call("c3", "rm")),
        asks(call("c4", "research", {"question": "where?"})),
        words("all is done"),
    ],
    "long": [
        asks(call("k1", "look"), call("k2", "note")),
        asks(call("k3", "rm")),
        words("it is here"),
    ],
}


def answer(body: dict, plan):
    turn = sum(message["role"] == "assistant" for message in body["messages"])
    return SCRIPTS[body["model"]][turn]


class Stage:
    """The provider, and the process that lives and dies."""

    def __init__(self):
        # A provider that finishes what it has begun, whoever has left.
        settings = Settings(capacity=None, delay_ms=0, leave_stream="finish")
        self.provider = Provider(settings, Model(tuple(SCRIPTS), answer))
        self.loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self.loop.run_forever, daemon=True)
        self._thread.start()
        self._door = SocketDoor(self.provider)
        self.url = self._in_loop(self._door.open())
        self._mortal = subprocess.Popen(
            [sys.executable, "-m", "tests.mortal"], cwd=ROOT, text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        )  # fmt: skip

    def _in_loop(self, coro):
        return asyncio.run_coroutine_threadsafe(coro, self.loop).result(10)

    def live(self, folder: Path, run_id: str, kill_at: int | None, **more) -> bool:
        """Did the life come to its own end?"""
        folder.mkdir(exist_ok=True)
        job = {"folder": str(folder), "run_id": run_id, "url": self.url, **more}
        self._mortal.stdin.write(json.dumps(job | {"kill_at": kill_at}) + "\n")
        self._mortal.stdin.flush()
        status = int(self._mortal.stdout.readline())
        assert status in (0, -9), f"it ended with {status}"
        return status == 0

    def served(self, run_id: str) -> Counter:
        """For each key of a run: how many answers were made, so billed, for it."""

        async def look():
            made = [e for e in self.provider.books.journal if e.served == "new"]
            return Counter(e.key for e in made if e.key.startswith(run_id))

        return self._in_loop(look())

    def close(self):
        self._mortal.stdin.close()
        self._mortal.wait()
        self._mortal.stdout.close()
        self._in_loop(self._door.close())
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join()
        self.loop.close()


@pytest.fixture(scope="module")
def stage():
    stage = Stage()
    yield stage
    stage.close()


@pytest.fixture(scope="module")
def undisturbed(stage, tmp_path_factory):
    """The run that never died, and how many points it had."""
    folder = tmp_path_factory.mktemp("whole")
    assert stage.live(folder, "whole", None)
    check(stage, folder, "whole")
    return RunStore(folder).load("whole"), int((folder / "points").read_text())


def check(stage, folder: Path, run_id: str) -> None:
    """No turn was billed twice, no write ran twice, and the trace can be read."""
    state = RunStore(folder).load(run_id)
    assert state.status == "completed" and state.output == "all is done"
    assert state.asking is None and unpriced_turns(state) == 0
    turns = [f"{run_id}-turn-{n}" for n in range(1, 5)]
    turns += [f"{run_id}.c4-turn-{n}" for n in range(1, 4)]
    served = stage.served(run_id)
    assert {*served.values()} == {1}
    assert sorted(key.rpartition("-")[0] for key in served) == turns
    did = (folder / "world.log").read_text().split()
    writes = [each for each in did if not each.startswith("look:")]
    assert writes == [each.format(run_id) for each in WRITES]
    events, torn = records(folder / "trace.jsonl")
    assert not torn and events[-1]["status"] == "completed"


def same(state, whole) -> None:
    """Same transcript, cost, counts and answer, down to the subagent."""
    for name in ("messages", "cost", "turns", "tool_runs", "output", "started",
                 "approvals", "prompt_tokens", "completion_tokens"):  # fmt: skip
        assert getattr(state, name) == getattr(whole, name), name
    for call_id, child in whole.children.items():
        same(state.children[call_id], child)


def test_killed_at_any_point_a_run_ends_as_if_it_had_not_been(
    stage, undisturbed, tmp_path
):
    whole, points = undisturbed
    assert points > 40
    for kill_at in range(1, points + 1):
        folder, run_id = tmp_path / str(kill_at), f"k{kill_at:03}"
        assert not stage.live(folder, run_id, kill_at), f"point {kill_at}"
        assert stage.live(folder, run_id, None), f"after point {kill_at}"
        check(stage, folder, run_id)
        same(RunStore(folder).load(run_id), whole)


def test_killed_again_and_again_it_still_ends_so(stage, undisturbed, tmp_path):
    """Each life is a point longer than the last one, or the same run never ends."""
    whole, _ = undisturbed
    lives = 1
    while not stage.live(tmp_path, "again", kill_at=lives):
        lives += 1
    assert lives > 10
    check(stage, tmp_path, "again")
    same(RunStore(tmp_path).load("again"), whole)
