"""Chapter 23, survival: what happened to a run, in order, over all its processes.

Whatever matters outside of a process writes one line into a file as it happens: a turn
that is billed, a tool that runs, a person's word, a save.
"""

import json
from pathlib import Path

from labkit.experiments.mortal import FileLog
from labkit.harness import RunState
from labkit.http import httpx
from labkit.store import RunStore
from labkit.workspace import Workspace


class Witness:
    """Notes what happens, in a file in `folder` that outlives the process."""

    def __init__(self, folder: str | Path):
        self.path = Path(folder) / "witness.jsonl"

    def note(self, lane: str, event: str) -> None:
        with self.path.open("a") as file:
            file.write(json.dumps({"lane": lane, "event": event}) + "\n")

    def events(self) -> list[dict]:
        lines = self.path.read_text().splitlines()
        return [json.loads(line) for line in lines]


class Bills(httpx.AsyncBaseTransport):
    """The way to a provider that bills each turn it is asked for."""

    def __init__(self, inner: httpx.AsyncBaseTransport, witness: Witness):
        self._inner, self._witness = inner, witness

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        messages = json.loads(await request.aread())["messages"]
        answer = await self._inner.handle_async_request(request)
        turn = 1 + sum(message["role"] == "assistant" for message in messages)
        self._witness.note("model", f"turn {turn}")
        return answer


class ToolLog(FileLog):
    """The log of a workspace's tools."""

    def __init__(self, witness: Witness):
        super().__init__(witness.path.with_name("tools.log"))
        self._witness = witness

    def append(self, line: str) -> None:
        super().append(line)
        self._witness.note("tools", line.partition(":")[0])


class Disk(RunStore):
    """A store whose saves are noted, with what the file now says."""

    def __init__(self, witness: Witness):
        super().__init__(witness.path.parent)
        self._witness = witness

    def save(self, state: RunState) -> None:
        super().save(state)
        self._witness.note("disk", what_it_says(state))


def what_it_says(state: RunState) -> str:
    """A saved state in a word or two.

    >>> what_it_says(RunState("n1", "plan", [], turns=1, asking="n1-turn-2-0a1b2c3d"))
    'turn 2 sent'
    """
    if state.approvals and not state.started:
        return "approved"
    if state.status != "running":
        about = (state.interruption or {}).get("type")
        return {"in_doubt": "in doubt", "approval": "waits"}.get(about, state.status)
    if state.started:
        return "begun"
    if state.asking:
        return f"turn {state.turns + 1} sent"
    said_by_model = state.messages[-1]["role"] == "assistant"
    return f"turn {state.turns} kept" if said_by_model else "result kept"


def shared(witness: Witness) -> dict:
    """What two processes have in common: the files."""
    return {"store": Disk(witness), "workspace": Workspace(ToolLog(witness))}
