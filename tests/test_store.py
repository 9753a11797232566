"""Runs on disk: replaced as a whole, seen before they are overwritten, held by one."""

import os
import subprocess
import sys
import threading

import pytest

from labkit.state import StateError, new_run
from labkit.store import RunStore

HOLD = """
import sys, time
from labkit.store import RunStore
with RunStore(sys.argv[1]).lock("n1"):
    print("held", flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def store(tmp_path):
    return RunStore(tmp_path / "runs")


@pytest.fixture
def state():
    return new_run("plan", "hi", run_id="n1")


def files(store) -> set[str]:
    return {path.name for path in store.folder.iterdir()}


def test_what_is_saved_is_loaded(store, state):
    store.save(state)
    assert store.load("n1") == state and state.revision == 1
    store.save(state)
    assert store.load("n1").revision == 2
    assert files(store) == {"n1.json", ".n1.lock"}
    assert store.path("n1").read_text() == f"{state.to_json()}\n"
    assert store.list() == ["n1"]


def test_an_empty_store_lists_nothing(store):
    assert store.list() == []
    with pytest.raises(StateError, match="no run n1 in .*; there are: none"):
        store.load("n1")


@pytest.mark.parametrize(
    "name",
    ["", ".", "..", "../n1", "/n1", "a/b", "a\\b", ".n1", "n\n", "n:1", "ñ", "x" * 201],
)
def test_a_run_id_is_a_name_and_no_path(store, name):
    for use in (
        store.path,
        store.load,
        lambda n: store.save(new_run("m", "", run_id=n)),
    ):
        if name:  # new_run makes one up for ""
            with pytest.raises(StateError, match="run_id"):
                use(name)
    with pytest.raises(StateError):
        store.lock(name).__enter__()
    assert not store.folder.exists()


@pytest.mark.parametrize(
    "torn",
    [b"", b"{bad json", b"null", b"[]", b'{"a":1}trailing', b"\xff", b'{"version":1'],
)
def test_what_cannot_be_read_is_named_and_left_alone(store, state, torn):
    store.save(state)
    path = store.path("n1")
    path.write_bytes(torn)
    for use in (lambda: store.load("n1"), lambda: store.save(state)):
        with pytest.raises(StateError) as error:
            use()
        assert str(path) in str(error.value) and error.value.path == str(path)
    assert path.read_bytes() == torn and state.revision == 1


def test_another_run_s_file_is_refused(store, state):
    store.save(state)
    os.rename(store.path("n1"), store.path("n2"))
    with pytest.raises(StateError, match="n2.json holds the run n1"):
        store.load("n2")
    with pytest.raises(StateError, match="n2.json holds the run n1"):
        store.save(new_run("plan", "hi", run_id="n2"))


def test_a_later_version_is_left_alone(store, state):
    store.save(state)
    path = store.path("n1")
    later = path.read_bytes().replace(b'"version":1', b'"version":2')
    path.write_bytes(later)
    with pytest.raises(StateError, match="update labkit"):
        store.load("n1")
    with pytest.raises(StateError, match="update labkit"):
        store.save(state)
    assert path.read_bytes() == later


def test_nothing_is_overwritten_that_was_not_seen(store, state):
    store.save(state)
    copy = store.load("n1")
    store.save(state)
    with pytest.raises(StateError, match="saved 2 times.*1 times: load the run again"):
        store.save(copy)
    with pytest.raises(StateError, match="another run_id"):
        store.save(new_run("plan", "another task", run_id="n1"))
    assert store.load("n1") == state


def test_a_save_that_fails_leaves_the_old_one(store, state, monkeypatch):
    store.save(state)

    def half(file, data):
        return write(file, data[:20])

    write = os.write
    with store.lock("n1"):
        monkeypatch.setattr("labkit.runfile.os.write", half)
        with pytest.raises(OSError, match="disk is full"):
            store.save(state)
        monkeypatch.undo()
        assert state.revision == 1 and store.load("n1") == state
        store.save(state)
    assert store.load("n1") == state and state.revision == 2


@pytest.mark.parametrize("left", [0, 1, 20, 400])
def test_a_torn_save_did_not_happen(store, state, left):
    """A process that dies in a save leaves part of a line behind."""
    store.save(state)
    before = store.load("n1")
    with store.path("n1").open("ab") as file:
        file.write(b'{"version":1,"run_id":"n1","revision":2,"mod'[:left])
    assert store.load("n1") == before
    store.save(before)
    assert store.load("n1") == before and before.revision == 2


def test_a_save_that_tore_at_any_byte_did_not_happen(store, state):
    """After one of its inner braces too."""
    state.remembered = {"look {}": "{}"}
    store.save(state)
    before, path = store.load("n1"), store.path("n1")
    saved = path.read_bytes()
    next = before.to_json().replace('"revision":1', '"revision":2').encode()
    for left in range(len(next) + 1):
        path.write_bytes(saved + next[:left])
        assert store.load("n1") == before
    store.save(before)
    assert store.load("n1").revision == 2


def test_a_held_run_grows_and_is_cut_down_at_the_end(store, state, monkeypatch):
    path = store.path("n1")
    with store.lock("n1"):
        for saves in range(1, 4):
            store.save(state)
            assert path.read_bytes().count(b"\n") == saves
            assert store.load("n1") == state
        monkeypatch.setattr("labkit.runfile.TIDY_BYTES", 10)
        store.save(state)
        assert path.read_bytes().count(b"\n") == 1
        store.save(state)
    assert path.read_text() == f"{state.to_json()}\n" and state.revision == 5


def test_a_reader_sees_the_old_or_the_new_never_half(store, state):
    state.messages *= 200
    store.save(state)
    seen, done = [], threading.Event()

    def read():
        while not done.is_set():
            seen.append(store.load("n1").revision)

    reader = threading.Thread(target=read)
    reader.start()
    for _ in range(100):
        store.save(state)
    done.set()
    reader.join()
    assert seen == sorted(seen) and len(seen) > 1


def test_one_holder_in_this_process(store):
    with store.lock("n1"), store.lock("n2"):
        with pytest.raises(StateError, match=f"n1 .* process {os.getpid()}"):
            store.lock("n1").__enter__()
    with store.lock("n1"):
        pass


def test_one_holder_among_processes_and_death_lets_go(store):
    held = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(store.folder)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    with held:
        assert held.stdout.readline() == "held\n"
        with pytest.raises(StateError, match=f"run n1 .* process {held.pid}: wait"):
            store.lock("n1").__enter__()
        held.kill()
        held.wait()
    with store.lock("n1"):
        pass
    assert store.list() == []
