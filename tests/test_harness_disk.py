"""A run on disk: in which order things are saved, and who may go on with it."""

import asyncio
import json
import re

import pytest

from labkit.client import ChatClient
from labkit.clock import run_virtual
from labkit.harness import approve, new_run, run
from labkit.server import start_server
from labkit.state import RunState, StateError
from labkit.store import RunStore
from labkit.workspace import Workspace, opening
from mock.memory import MemoryTransport
from mock.provider import Provider, Settings
from mock.scripted import SCRIPTED
from tests.players import Counted, Player, answers, calls

WRITE = calls(("c1", "look", ""), ("c2", "write", ""))


class Diary(RunStore):
    """A store that notes what each save had to say."""

    def __init__(self, folder):
        super().__init__(folder)
        self.saved: list[RunState] = []

    def save(self, state):
        super().save(state)
        self.saved.append(self.load(state.run_id))


def play(player, *tools, state=None, **options):
    state = state or new_run("plan", "hi", run_id="n1")
    return run_virtual(run, state, [t.tool for t in tools], player, **options)


def test_before_each_effect_the_disk_knows_all_that_came_before(tmp_path):
    store, seen = Diary(tmp_path), {}

    class Watched(Player):
        def stream(self, *args, **kwargs):
            turn = len(self.asked) + 1
            seen[f"turn {turn}"] = store.saved[-1]
            return super().stream(*args, **kwargs)

    def tool(name, **flags):
        def note(args, context):
            seen[name] = store.saved[-1]
            return f"{name} is done"

        return Counted(name, note, **flags)

    look, write = tool("look", read_only=True), tool("write")
    state = play(Watched(WRITE, "done"), look, write, store=store)
    assert list(seen) == ["turn 1", "look", "write", "turn 2"]
    assert re.fullmatch("n1-turn-1-[0-9a-f]{8}", seen["turn 1"].asking)
    assert seen["look"].messages[-1]["tool_calls"][0]["id"] == "c1"
    assert (seen["look"].cost, seen["look"].asking) == (state.cost / 2, None)
    assert seen["look"].started == []  # a read is no intent
    assert answers(seen["write"]) == {"c1": "look is done"}
    assert seen["write"].started == ["c2"]
    assert answers(seen["turn 2"])["c2"] == "write is done"
    assert seen["turn 2"].started == []
    assert re.fullmatch("n1-turn-2-[0-9a-f]{8}", seen["turn 2"].asking)
    assert store.load("n1") == state and state.status == "completed"
    assert len(store.saved) == 5


def test_what_cannot_be_saved_does_not_happen(tmp_path, monkeypatch):
    store, look, player = RunStore(tmp_path), Counted(), Player(WRITE, "done")

    def full(*args):
        raise OSError("no space left on device")

    state = new_run("plan", "hi", run_id="n1")
    monkeypatch.setattr("labkit.runfile.RunFile.append", full)
    with pytest.raises(OSError, match="no space"):
        play(player, look, state=state, store=store)
    assert player.asked == [] and look.ran == []
    assert (state.asking, state.unpriced_turns) == (None, 0)  # it was never sent


def test_one_saved_approval_resumed_twice_deletes_once(tmp_path):
    store, player = RunStore(tmp_path), Player(calls(("c1", "rm", "")), "done")
    rm = Counted("rm", needs_approval=True)
    state = play(player, rm, store=store)
    approve(state, "c1")
    store.save(state)
    first, second = store.load("n1"), store.load("n1")
    play(player, rm, state=first, store=store)
    with pytest.raises(StateError, match="load the run again"):
        play(player, rm, state=second, store=store)
    play(player, rm, state=store.load("n1"), store=store)
    assert len(rm.ran) == 1 and store.load("n1").status == "completed"


def test_a_run_is_held_while_it_runs(tmp_path):
    async def other(args, context):
        with pytest.raises(StateError, match="worked on by process"):
            await run(store.load("n1"), [look.tool], player, store=store)
        return "held"

    store, player = RunStore(tmp_path), Player(calls(("c1", "look", "")), "done")
    look = Counted("look", other)
    state = play(player, look, store=store)
    assert answers(state) == {"c1": "held"} and len(look.ran) == 1
    with store.lock("n1"):
        pass


def test_a_new_run_does_not_overwrite_one_of_its_name(tmp_path):
    store = RunStore(tmp_path)
    play(Player("done"), store=store)
    player = Player("done")
    with pytest.raises(StateError, match="another run_id"):
        play(player, store=store)
    assert player.asked == [] and store.load("n1").output == "done"


def test_a_write_in_doubt_whose_tool_is_gone_is_still_in_doubt():
    state = new_run("plan", "hi", run_id="n1")
    player = Player(calls(("c1", "write", "")), "done")
    write = Counted("write", needs_approval=True)
    play(player, write, state=state)
    state.started.append("c1")  # as a kill would leave it
    play(player, Counted("look"), state=state)
    assert state.interruption["type"] == "in_doubt"


def test_both_doors_give_one_transcript_and_one_state():
    """Byte for byte, over memory and virtual time as over sockets and real time."""

    async def life(url, scenario, transport=None):
        with Workspace() as workspace:
            async with ChatClient(url, transport=transport) as client:
                state = new_run(scenario, opening(), run_id=f"both-{scenario}")
                while state.status in ("running", "interrupted"):
                    if state.interruption:
                        approve(state, state.interruption["call_id"])
                    await run(state, workspace.tools(), client)
                return state.to_json()

    scenarios = ("plan", "recover", "destructive", "pair", "runaway")
    provider = Provider(Settings(delay_ms=0), SCRIPTED)
    with start_server("scripted") as server:
        for scenario in scenarios:
            door = MemoryTransport(provider)
            memory = run_virtual(life, "http://mock/v1", scenario, door)
            assert asyncio.run(life(server.url, scenario)) == memory
            assert json.loads(memory)["turns"] >= 2
