"""The file of a run, damaged in every way: another state, or an error that names it.

What loads is gone on with too: a state that only looks whole must not bring down the
loop that trusts it.
"""

import asyncio
import json
import tempfile
from random import Random

from labkit.clock import run_virtual
from labkit.decisions import approve, reject, resolve
from labkit.errors import LabkitError
from labkit.harness import RunLimits, new_run
from labkit.harness import run as run_agent
from labkit.state import VERSION, RunState, StateError, pending
from labkit.store import RunStore
from labkit.subagent import subagent
from labkit.tools import Tool
from tests.players import PATH, Counted, Player, calls
from tests.verify.mutations import change, damage
from tests.verify.section import Section, Tally, cases

NAME = "state files"
ID = "n1"


def tools() -> list[Tool]:
    """A read, a write, one that needs a person, and a subagent with the same three."""
    own = [
        Counted("look", lambda args, context: args, PATH, read_only=True).tool,
        Counted("note").tool,
        Counted("rm", needs_approval=True).tool,
    ]
    inner = Player(calls(("c1", "look", '{"path": "b"}'), ("c2", "rm", "{}")), "found")
    return [*own, subagent("research", "Investigates.", own, inner)]


def player() -> Player:
    return Player(
        calls(("c1", "look", '{"path": "a.txt"}'), ("c2", "note", "{}")),
        calls(("c3", "rm", "{}"), ("c4", "research", '{"question": "why?"}')),
        "It is \N{WATER WAVE}.",
    )


LIMITS = RunLimits(max_turns=20, max_budget_usd="0.05")


class Recorder(RunStore):
    """Keeps a copy of each save, as a line of a file that was never cut down."""

    def __init__(self, folder):
        super().__init__(folder)
        self.lines: list[bytes] = []

    def save(self, state) -> None:
        super().save(state)
        self.lines.append(state.to_json().encode())


def real_file() -> list[bytes]:
    """The lines of a run with two approvals, a rejection and a child."""

    async def live(folder):
        store, state = Recorder(folder), new_run("plan", "hi", "be brief", run_id=ID)
        go_on = dict(limits=LIMITS, store=store, dedupe=True)
        await run_agent(state, tools(), player(), **go_on)
        while state.interruption:
            id = state.interruption["call_id"]
            reject(state, id, "not now") if id == "c2" else approve(state, id)
            store.save(state)
            await run_agent(state, tools(), player(), **go_on)
        assert state.status == "completed"
        return store.lines

    with tempfile.TemporaryDirectory() as folder:
        return run_virtual(live, folder)


def damaged(lines: list[bytes], rng: Random) -> bytes:
    """The file after something happened to it."""
    upto = rng.randrange(1, len(lines) + 1)
    file = b"\n".join(lines[max(0, upto - 3) : upto]) + b"\n"
    match rng.randrange(8):
        case 0 | 1:
            return damage(file, rng)
        case 2:
            return damage(file.replace(b"\n", b"\r\n"), rng)
        case 3:  # runs in runs in runs
            depth = rng.choice((3, 100, 150, 151, 400, 495, 3000))
            start, end = lines[0].split(b'"children":{}')
            nested = (start + b'"children":{"c":') * depth + lines[0]
            return nested + (b"}" + end) * depth
        case 4:  # by another version of the program
            other = rng.choice((VERSION + 1, VERSION - 1, "1", 1.0, True, None, 10**30))
            return json.dumps(json.loads(lines[upto - 1]) | {"version": other}).encode()
        case _:
            return json.dumps(change(json.loads(lines[upto - 1]), rng)).encode()


async def check_file(store: RunStore, data: bytes) -> bool:
    """A StateError that names the file, or a state that a loop can go on with. Did it
    load?"""
    path = store.path(ID)
    path.write_bytes(data)
    try:
        state = store.load(ID)
    except StateError as error:
        assert error.path == str(path) and str(path) in str(error), str(error)
        str(error).encode()
        assert path.read_bytes() == data, "the file was changed"
        return False
    assert RunState.from_json(state.to_json()) == state
    for decide in (approve, reject, lambda *to: resolve(*to, ran=True)):
        for call in pending(state)[:2]:
            try:
                decide(RunState.from_json(state.to_json()), call.id)
            except StateError:
                pass
    if pending(state):
        approve(state, pending(state)[0].id)
    await go_on(state, store)
    return True


async def go_on(state: RunState, store: RunStore) -> None:
    """Resume it. What goes wrong is typed; what is saved can be loaded again."""
    try:
        async with asyncio.timeout(60):
            await run_agent(state, tools(), player(), store=store, dedupe=True)
    except LabkitError:
        return
    if state.resumable or state.status in ("completed", "failed"):
        assert store.load(ID) == state


def run(budget_s: float, seed: int) -> Section:
    lines = real_file()
    cut = Tally("files cut off, one after each byte of a save")
    any_way = Tally("files with bytes or values changed")
    loaded = 0

    async def all_of_them(folder):
        nonlocal loaded
        store = RunStore(folder)
        last = lines[-1]
        step = max(1, len(last) // int(100 * budget_s))
        for left in range(0, len(last), step):
            with cut.attempt(f"the first {left} bytes"):
                torn = lines[-2] + b"\n" + last[:left]
                store.path(ID).write_bytes(torn)
                assert store.load(ID).revision == json.loads(lines[-2])["revision"]
                assert not await check_file(store, last[:left])
        for case, rng in cases(budget_s / 2, seed):
            with any_way.attempt(case):
                loaded += await check_file(store, damaged(lines, rng))

    with tempfile.TemporaryDirectory() as folder:
        run_virtual(all_of_them, folder)
    note = (
        f"{loaded:,} of the changed files were still a state, and were gone on with;"
        " the others were refused with their path and left as they were."
    )
    return Section(NAME, [cut, any_way], [note])
