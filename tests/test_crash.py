"""Disks that fill up or are locked, two that go on with one run, kernels that die: what
was saved stays whole, the error says what to do, and no server is left behind.

That a run survives SIGKILL at each of its points: tests/test_kill.py.
"""

import json
import os
import pickle
import shutil
import signal
import subprocess
import sys
import time
from contextlib import ExitStack
from pathlib import Path

import pytest

from labkit.__main__ import main as labkit
from labkit.clock import run_virtual
from labkit.errors import LabkitError
from labkit.harness import new_run, run
from labkit.runfile import RunFile, SaveError
from labkit.server import start_server
from labkit.state import StateError
from labkit.store import RunStore
from labkit.subagent import subagent
from labkit.trace import Trace, records
from tests.players import Counted, Player, answers, calls

ROOT = Path(__file__).resolve().parent.parent
LABKIT = [sys.executable, "-m", "labkit"]
posix = pytest.mark.skipif(os.name == "nt", reason="signals and limits of POSIX")
linux = pytest.mark.skipif(not Path("/proc/self").is_dir(), reason="looks into /proc")


def small_disk(folder: Path, kind: str) -> list[dict]:
    """What tests.smalldisk tells; skips where this machine gives it no disk."""
    command = [sys.executable, "-m", "tests.smalldisk", str(folder), kind]
    if kind != "limit":
        if not shutil.which("unshare"):
            pytest.skip("no mount namespaces here")
        command = ["unshare", "--mount", "--map-root-user", *command]
    done = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, timeout=60
    )
    if not done.stdout.startswith("ready") and kind != "limit":
        pytest.skip(f"no disk of our own here: {done.stderr.strip()[-80:]}")
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()[1:]]


# A full disk


@posix
@pytest.mark.parametrize("kind", ["disk", "limit"])
def test_a_disk_that_fills_up_at_any_moment_loses_nothing(tmp_path, kind):
    told = small_disk(tmp_path, kind)
    assert len(told) > 10
    for each in told:
        # What the last save that came back had promised stands on the disk.
        assert each["kept_its_word"] and each["left"] == [], each
        if each["said"]:
            assert each["said"].endswith(
                "is whole; make room on the disk, then resume the run"
            )
        # With room again the run ends as ever, and no write ran twice.
        assert (each["again"], each["status"], each["messages"]) == (
            None, "completed", 7,
        ), each  # fmt: skip
        assert each["writes"] == ["c2", "c3"], each
        assert each["last_told"] == "run_stopped" and each["torn"] <= 1, each
    assert sum(bool(each["said"]) for each in told) > 5  # they were too small


def test_a_torn_line_that_could_not_be_taken_back_costs_no_other(tmp_path, monkeypatch):
    store, state = RunStore(tmp_path), new_run("plan", "hi", run_id="n1")
    path, write = store.path("n1"), os.write

    def half(file, data):
        write(file, data[:30])
        raise OSError(5, "Input/output error")

    def broken(*args):
        raise OSError(5, "Input/output error")

    with store.lock("n1"):
        store.save(state)
        for _ in range(2):
            with monkeypatch.context() as disk:
                disk.setattr("labkit.runfile.os.write", half)
                disk.setattr("labkit.runfile.os.ftruncate", broken)
                with pytest.raises(SaveError, match="Input/output error"):
                    store.save(state)
            assert not path.read_bytes().endswith(b"\n") and store.load("n1") == state
            store.save(state)
            assert store.load("n1") == state
            with monkeypatch.context() as disk:  # and this one can be taken back
                disk.setattr("labkit.runfile.os.write", half)
                with pytest.raises(SaveError):
                    store.save(state)
            assert store.load("n1") == state
    assert store.load("n1").revision == 3


def test_a_file_that_cannot_be_cut_down_is_long_and_whole(tmp_path, monkeypatch):
    """All was saved: that it takes more room than it must is no reason to fail."""

    def full(path, line):
        raise OSError(28, "No space left on device")

    store, state = RunStore(tmp_path), new_run("plan", "hi", run_id="n1")
    monkeypatch.setattr("labkit.runfile.TIDY_BYTES", 10)
    with store.lock("n1"):
        store.save(state)
        monkeypatch.setattr("labkit.runfile.replace", full)
        for revision in range(2, 6):
            store.save(state)
            assert store.load("n1").revision == revision
    assert store.path("n1").read_bytes().count(b"\n") == 5


def test_a_file_that_could_not_be_opened_again_is_opened_at_the_next_save(
    tmp_path, monkeypatch
):
    store, state = RunStore(tmp_path), new_run("plan", "hi", run_id="n1")
    with store.lock("n1"):
        store.save(state)
        with monkeypatch.context() as disk:
            disk.setattr("labkit.runfile.TIDY_BYTES", 10)
            disk.setattr(RunFile, "_open", no_more_files)
            store.save(state)
            assert store.load("n1") == state
            with pytest.raises(SaveError, match="Too many open files"):
                store.save(state)
        store.save(state)
    assert store.load("n1") == state and state.revision == 3


def no_more_files(self):
    raise OSError(24, "Too many open files")


def test_a_run_whose_first_save_died_was_never_there(tmp_path):
    """There is no moment in which its file is there without a line in it."""
    RunFile(path := tmp_path / "n1.json")
    assert not path.exists()
    store = RunStore(tmp_path)
    (tmp_path / ".n1.json.tmp").write_bytes(b'{"version":1,"run')  # it died here
    assert store.list() == []
    store.save(new_run("plan", "hi", run_id="n1"))
    assert store.load("n1").revision == 1


def test_a_disk_error_inside_a_subagent_ends_the_run_and_not_the_call(
    tmp_path, monkeypatch
):
    """It is no news for the model, not even where the disk is well again at once."""
    look = Counted("look")
    child = Player(calls(("k1", "look", "")), "found")
    inner = subagent("research", "Looks.", [look.tool], child, model="long")
    player = Player(calls(("c1", "research", '{"question":"?"}')), "done")
    store, state = RunStore(tmp_path), new_run("plan", "hi", run_id="n1")
    append, failed = RunFile.append, []

    def full_once(self, line):
        if b'"n1.c1-turn-2' in line and not failed:
            failed.append(line)
            raise OSError(28, "No space left on device")
        append(self, line)

    with monkeypatch.context() as disk:
        disk.setattr(RunFile, "append", full_once)
        with pytest.raises(SaveError, match="make room"):
            run_virtual(run, state, [inner], player, store=store)
    assert len(failed) == 1
    state = store.load("n1")
    assert answers(state) == {} and len(look.ran) == 1
    run_virtual(run, state, [inner], player, store=store)
    assert answers(state) == {"c1": "found"} and state.status == "completed"


def test_a_torn_line_of_a_trace_costs_one_line(tmp_path, monkeypatch):
    """A disk that takes half a line, by a write that does not even complain."""
    trace, write = Trace(tmp_path / "t.jsonl"), os.write

    def half(file, data):
        return write(file, data[: len(data) // 2])

    async def main():
        trace.write("n1", "turn", turn=1)
        with monkeypatch.context() as disk:
            disk.setattr("labkit.trace.os.write", half)
            with pytest.raises(SaveError, match="t.jsonl: No space left.*make room"):
                trace.write("n1", "turn", turn=2)
        trace.write("n1", "turn", turn=3)

    run_virtual(main)
    events, torn = records(trace.path)
    assert [event["turn"] for event in events] == [1, 3] and torn == [2]


# A folder that may not be written


@posix
def test_a_locked_disk_is_told_and_nothing_is_lost(tmp_path):
    (told,) = small_disk(tmp_path, "locked")
    assert told["kept_its_word"] and told["ran"] == []
    for said in told["said"]:
        assert "Read-only file system" in said and "make it writable for you" in said


def test_a_file_in_the_place_of_the_folder(tmp_path):
    place = tmp_path / "runs"
    place.write_text("mine")
    for folder in (place, place / "deeper"):
        store, player = RunStore(folder), Player("done")
        state = new_run("plan", "hi", run_id="n1")
        with pytest.raises(SaveError, match="move away the file that stands in"):
            run_virtual(run, state, [], player, store=store)
        assert player.asked == []  # what cannot be saved does not happen
        with pytest.raises(StateError, match="there are: none"):
            store.load("n1")
    assert place.read_text() == "mine"


def test_a_run_that_cannot_be_read_is_told(tmp_path):
    (tmp_path / "n1.json").mkdir()
    with pytest.raises(StateError, match="cannot read .*n1.json: .*was changed"):
        RunStore(tmp_path).load("n1")


def test_the_command_line_says_it_in_one_line(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LLM_BASE_URL", "http://127.0.0.1:1/v1")  # it never gets there
    Path("runs").write_text("mine")
    assert labkit(["run", "--id=n1"]) == 1
    said = capsys.readouterr()
    (line,) = said.err.splitlines()
    assert said.out == ""
    assert line.startswith("cannot write") and "move away the file" in line


def test_a_save_error_is_both_kinds_and_crosses_processes():
    error = SaveError("cannot write n1.json", path="n1.json")
    assert isinstance(error, LabkitError) and isinstance(error, OSError)
    copy = pickle.loads(pickle.dumps(error))
    assert (str(copy), copy.path) == ("cannot write n1.json", "n1.json")


# Two processes, one run


@pytest.fixture
def commands(tmp_path, monkeypatch):
    """`commands("resume", "n1")`: a process of its own, at one provider."""
    monkeypatch.chdir(tmp_path)
    with start_server("scripted") as server, ExitStack() as stack:
        monkeypatch.setenv("LLM_BASE_URL", server.url)
        yield lambda *words: stack.enter_context(
            subprocess.Popen(
                [*LABKIT, *words], text=True,
                stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            )
        )  # fmt: skip


@posix
def test_the_second_of_two_is_told_who_holds_the_run(commands, capsys):
    first = commands("run", "--scenario=slow", "--id=n1")
    assert first.stdout.readline().startswith("  scanned")  # it works
    for words in (["resume"], ["approve"], ["resolve", "--not-run", "--call=c1"]):
        assert labkit([*words, "n1"]) == 1
        assert capsys.readouterr().err == (
            f"run n1 is being worked on by process {first.pid}: wait until it is"
            " done, or stop it first\n"
        )
    assert "completed" in first.communicate()[0] and first.returncode == 0


@posix
def test_of_many_that_approve_at_once_one_deletes(commands):
    assert labkit(["run", "--scenario=destructive", "--id=n1"]) == 3
    racing = [commands("approve", "n1") for _ in range(3)]
    ends = [(each.communicate(), each.returncode) for each in racing]
    assert sorted(status for _, status in ends) == [0, 1, 1], ends
    for (_, said), status in ends:
        told = ("worked on by process", "load the run again", "waits for no decision")
        assert status == 0 or any(words in said for words in told), said
    events, torn = records("runs/n1.jsonl")
    deleted = [e for e in events if e.get("tool_name") == "delete_file"]
    assert [e["type"] for e in deleted].count("tool_start") == 1 and torn == []
    assert RunStore("runs").load("n1").status == "completed"


def test_the_holder_is_named_as_soon_as_it_has_written_its_name(tmp_path, monkeypatch):
    """A lock taken in this very moment: nobody stands in the file, or the last one."""
    store = RunStore(tmp_path)
    with store.lock("n1"):
        lock = tmp_path / ".n1.lock"
        lock.write_text("")
        monkeypatch.setattr(
            "labkit.store.time.sleep", lambda seconds: lock.write_text("4711")
        )
        with pytest.raises(StateError, match="by process 4711: wait"):
            store.lock("n1").__enter__()
    assert lock.read_text() == ""


# Kernels that end


START = """
from labkit import start_server
server = start_server({kind!r})
print(server._process.pid)
"""
FORK = """
import os, time
if os.fork() == 0:  # as a worker of multiprocessing, which outlives its kernel
    os.close(1)
    time.sleep(30)
    os._exit(0)
"""


def ended(pid: int, within_s: float = 15.0) -> bool:
    """Is a process gone (or dead, and nobody has taken notice)?"""
    ends_s = time.monotonic() + within_s
    while time.monotonic() < ends_s:
        try:
            stat = Path(f"/proc/{pid}/stat").read_text()
        except (FileNotFoundError, ProcessLookupError):
            return True
        if stat.rpartition(")")[2].split()[0] == "Z":
            return True
        time.sleep(0.02)
    return False


class Kernel:
    """A real ipykernel, as a notebook has it."""

    def __init__(self):
        from jupyter_client.manager import start_new_kernel

        env = {**os.environ, "PYTHONPATH": str(ROOT)}
        self.manager, self._client = start_new_kernel(
            kernel_name="python3", env=env, startup_timeout=60
        )

    def run(self, code: str) -> str:
        said = []

        def hear(message):
            if message["msg_type"] in ("stream", "error"):
                said.append(message["content"].get("text", str(message["content"])))

        self._client.execute_interactive(code, output_hook=hear, timeout=60)
        return "".join(said)

    @property
    def pid(self) -> int:
        return self.manager.provisioner.pid

    def close(self):
        self._client.stop_channels()
        self.manager.shutdown_kernel(now=True)


@pytest.fixture
def kernel():
    kernel = Kernel()
    yield kernel
    kernel.close()


@linux
@pytest.mark.parametrize("how", ["killed", "killed, with a fork alive", "shut down"])
def test_no_server_outlives_its_kernel(kernel, how):
    servers = [int(kernel.run(START.format(kind=k))) for k in ("hostile", "scripted")]
    assert not any(ended(pid, within_s=0.1) for pid in servers)
    if "fork" in how:
        kernel.run(FORK)
    if how == "shut down":
        kernel.manager.shutdown_kernel()
    else:
        os.kill(kernel.pid, signal.SIGKILL)
    assert [ended(pid) for pid in servers] == [True, True]
