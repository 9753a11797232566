"""A run on a disk that is too small for it: `python -m tests.smalldisk FOLDER KIND`.

KIND is `disk`, a real file system of 64 pages (in a mount namespace of this process: it
goes with it, and needs no cleaning up), or `limit`: files may grow to so many bytes
only (RLIMIT_FSIZE). The run is made again for disks that are full after each page, or
each 700 bytes. For each it prints a JSON line: what was raised, and what became of the
run once there was room again. `locked` is the real file system made read-only.
"""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from labkit.clock import run_virtual
from labkit.harness import new_run, resolve, run
from labkit.runfile import SaveError
from labkit.store import RunStore
from labkit.trace import Trace, records
from tests.players import Counted, Player, calls

PAGE = os.sysconf("SC_PAGE_SIZE")
STEPS = 16
LONG = "x" * 3000  # so that a save is no small matter
SCRIPT = (
    calls(("c1", "look", ""), ("c2", "write", "")),
    calls(("c3", "write", "")),
    "all is done",
)


class Diary(RunStore):
    """Notes what each save that came back had promised."""

    promised: str | None = None

    def save(self, state) -> None:
        super().save(state)
        self.promised = state.to_json()


def tools(world: list[str]) -> list:
    def act(args, context):
        world.append(context.call_id)
        return LONG

    look, write = Counted("look", act, read_only=True), Counted("write", act)
    return [look.tool, write.tool]


def play(store: RunStore, state, world: list[str]) -> str | None:
    """Go on with a run. Returns the error's words, if the disk ended it."""
    trace = Trace(store.folder / "trace.jsonl")
    try:
        run_virtual(run, state, tools(world), Player(*SCRIPT), store=store, trace=trace)
    except SaveError as error:
        return str(error)
    finally:
        trace.close()


def story(folder: Path, too_small) -> dict:
    """One run that runs out of room, and what became of it."""
    store, world = Diary(folder), []
    with too_small(folder):
        said = play(store, new_run("plan", "hi", run_id="n1"), world)
        kept = store.load("n1").to_json() if store.list() else None
        left = sorted(path.name for path in folder.iterdir() if path.suffix == ".tmp")
    told = {"said": said, "kept_its_word": kept == store.promised, "left": left}
    store = RunStore(folder)
    state = store.load("n1") if store.list() else new_run("plan", "hi", run_id="n1")
    again = play(store, state, world)
    while (state.interruption or {}).get("type") == "in_doubt":
        call = state.interruption["call_id"]
        ran = call in world
        resolve(state, call, ran=ran, **({"result": LONG} if ran else {}))
        store.save(state)
        again = play(store, state, world)
    events, torn = records(folder / "trace.jsonl")
    ends = {"again": again, "status": state.status, "messages": len(state.messages)}
    ends["writes"] = [call for call in world if call != "c1"]
    return told | ends | {"torn": len(torn), "last_told": events[-1]["type"]}


def full_after(disk: Path, room: int):
    """A context in which a real disk has `room` bytes left."""

    @contextmanager
    def too_small(folder: Path) -> Iterator[None]:
        ballast = disk / "ballast"
        free = os.statvfs(disk).f_bavail * PAGE
        ballast.write_bytes(b"b" * (free - room))
        try:
            yield
        finally:
            ballast.unlink()

    return too_small


def limited_to(size: int):
    """A context in which no file may be longer than `size`."""
    import resource

    @contextmanager
    def too_small(folder: Path) -> Iterator[None]:
        _, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
        try:
            yield
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))

    return too_small


def locked(disk: Path) -> dict:
    """What a run says on a disk that has become read-only, and that nothing is lost."""
    store, world = Diary(disk / "runs"), []
    state = new_run("plan", "hi", run_id="n1")
    write = Counted("write", "done", needs_approval=True)
    player = Player(calls(("c1", "write", "")), "all is done")
    run_virtual(run, state, [write.tool], player, store=store)
    mount(disk, "remount,ro")
    said = []
    for work in (
        lambda: play(store, store.load("n1"), world),
        lambda: store.save(store.load("n1")),
        lambda: RunStore(disk / "others").save(new_run("plan", "hi", run_id="n2")),
    ):
        try:
            said.append(work())
        except SaveError as error:
            said.append(str(error))
    kept = store.load("n1").to_json() == store.promised
    mount(disk, "remount,rw")
    return {"said": said, "kept_its_word": kept, "ran": write.ran + world}


def mount(disk: Path, options: str) -> None:
    command = ["mount", "-t", "tmpfs", "-o", options, "none", str(disk)]
    if subprocess.run(command, capture_output=True).returncode:
        sys.exit("no disk of our own here")


def main(disk: Path, kind: str) -> None:
    if kind != "limit":
        mount(disk, f"size={64 * PAGE}")
    print("ready", flush=True)
    if kind == "locked":
        print(json.dumps(locked(disk)))
        return
    for step in range(1, STEPS):
        home = disk / f"{step:02}"
        home.mkdir()
        small = full_after(disk, step * PAGE)
        told = story(home, small if kind == "disk" else limited_to(step * 700))
        print(json.dumps(told | {"step": step}), flush=True)
        for path in home.iterdir():
            path.unlink()


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
