"""The workspace: no path leads out, the original stays whole, Stop is heard or not."""

import asyncio
import gc
import os
import time

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import labkit.workspace as workspace_module
from labkit.cancel import Stop
from labkit.clock import run_virtual
from labkit.errors import Stopped
from labkit.execution import call_tool
from labkit.tools import PermanentToolError, Tool, ToolContext, ToolError
from labkit.workspace import FILES, Workspace

NAMES = ["access.log", "errors.log", "notes.txt"]
CONTENTS = {name: (FILES / name).read_bytes() for name in NAMES}
links = pytest.mark.skipif(os.name == "nt", reason="links need a privilege there")


@pytest.fixture
def workspace():
    with Workspace() as opened:
        yield opened
    assert {each.name: each.read_bytes() for each in FILES.iterdir()} == CONTENTS


def do(workspace: Workspace, name: str, context=None, **arguments) -> str:
    """One call, as the harness makes it, at the virtual clock."""
    (tool,) = (each for each in workspace.tools() if each.name == name)
    return run_virtual(call_tool, tool, arguments, context)


# The tools


def test_what_a_workspace_holds(workspace):
    assert do(workspace, "list_files") == '["access.log","errors.log","notes.txt"]'
    for name in NAMES:
        assert do(workspace, "read_file", path=name) == CONTENTS[name].decode()
    assert workspace.log == ["list_files", *(f"read_file:{name}" for name in NAMES)]
    assert workspace.deleted == []


def test_a_person_is_asked_before_a_write_and_nothing_else():
    with Workspace() as opened:
        flags = {t.name: (t.read_only, t.needs_approval) for t in opened.tools()}
    assert flags.pop("delete_file") == (False, True)
    assert set(flags.values()) == {(True, False)} and len(flags) == 3


def test_a_missing_file_is_told_with_the_way_on(workspace):
    said = "^no such file: timeout.log. Call list_files to see what exists.$"
    with pytest.raises(ToolError, match=said) as caught:
        do(workspace, "read_file", path="timeout.log")
    assert not isinstance(caught.value, PermanentToolError)


def test_a_deletion_is_of_the_copy_and_may_come_twice(workspace):
    for _ in range(2):
        assert do(workspace, "delete_file", path="access.log") == "Deleted access.log."
    assert do(workspace, "list_files") == '["errors.log","notes.txt"]'
    assert workspace.deleted == ["access.log", "access.log"]
    with Workspace() as other:
        assert len(list(other.root.iterdir())) == 3


def test_a_log_may_be_shared():
    log = ["before"]
    with Workspace(log) as one, Workspace(log) as other:
        do(one, "list_files")
        do(other, "delete_file", path="notes.txt")
        assert one.root != other.root and one.log is other.log is log
    assert log == ["before", "list_files", "delete_file:notes.txt"]
    assert one.deleted == ["notes.txt"]


# The jail

OUT = [
    "", ".", "..", "/", "../", "notes.txt/..", "../..", "../secret.txt",
    "./../secret.txt", "x/../../secret.txt", "/etc/passwd", "/etc/shadow", "//etc",
    "a\0b", "\0", "\ud800",
]  # fmt: skip


@pytest.mark.parametrize("path", OUT)
@pytest.mark.parametrize("tool", ["read_file", "delete_file"])
def test_no_path_leads_out(workspace, tool, path):
    secret = workspace.root.parent / "secret.txt"
    secret.write_text("secret")
    with pytest.raises(PermanentToolError) as caught:
        do(workspace, tool, path=path)
    assert str(caught.value) == f"permission denied: {path}"
    assert workspace.log == workspace.deleted == []  # it did not run
    assert secret.exists() and len(list(workspace.root.iterdir())) == 3


def test_the_original_cannot_be_named_either(workspace):
    for path in (FILES / "notes.txt", os.path.relpath(FILES, workspace.root)):
        with pytest.raises(PermanentToolError):
            do(workspace, "delete_file", path=str(path))


@links
@pytest.mark.parametrize("tool", ["read_file", "delete_file"])
@pytest.mark.parametrize("kind", ["file", "folder", "dangling", "chain", "loop"])
def test_no_link_leads_out(workspace, tool, kind, tmp_path):
    secret = tmp_path / "secret.txt"
    secret.write_text("secret")
    link = workspace.root / "link"
    target = {
        "file": secret, "folder": tmp_path, "dangling": tmp_path / "nothing",
        "chain": workspace.root / "second", "loop": link,
    }[kind]  # fmt: skip
    link.symlink_to(target)
    (workspace.root / "second").symlink_to(secret)
    path = "link/secret.txt" if kind == "folder" else "link"
    if kind == "loop":  # some Pythons resolve it to itself: a file that is not there
        try:
            assert do(workspace, tool, path=path) == "Deleted link."
        except ToolError as error:
            assert str(workspace.root) not in str(error)
    else:
        with pytest.raises(PermanentToolError, match=f"^permission denied: {path}$"):
            do(workspace, tool, path=path)
    assert secret.read_text() == "secret" and link.is_symlink()


@links
def test_a_link_inside_is_followed(workspace):
    (workspace.root / "link").symlink_to(workspace.root / "notes.txt")
    assert do(workspace, "read_file", path="link").encode() == CONTENTS["notes.txt"]


@pytest.mark.parametrize("path", ["x" * 300, "x/" * 3000, "notes.txt/x", "no/such"])
def test_a_name_that_no_file_can_have(workspace, path):
    """Told in words, without the folder of this machine that it would stand in."""
    with pytest.raises(ToolError) as caught:
        do(workspace, "read_file", path=path)
    assert str(caught.value).startswith(f"no such file: {path}. Call list_files")
    assert do(workspace, "delete_file", path=path) == f"Deleted {path}."
    assert len(list(workspace.root.iterdir())) == 3


def test_a_folder_is_neither_read_nor_deleted(workspace):
    (workspace.root / "old").mkdir()
    for tool in ("read_file", "delete_file"):
        with pytest.raises(PermanentToolError, match="^permission denied: old$"):
            do(workspace, tool, path="old")
    assert (workspace.root / "old").is_dir()


PARTS = st.sampled_from(["..", ".", "", "files", "errors.log", "etc", "~", "\0", "é"])


@given(st.lists(PARTS, max_size=6).map("/".join) | st.text(max_size=20))
@example("/../files/errors.log")
@example("~/errors.log")
def test_any_path_stays_inside_or_is_refused(path):
    """And whatever is read is one of the three files."""
    with Workspace() as opened:
        read, context = opened.read_file, ToolContext()
        try:
            said = asyncio.run(read({"path": path}, context))
        except ToolError as error:
            assert path in str(error)
        else:
            assert said.encode() in CONTENTS.values()


# The copy


def test_the_copy_goes_with_close():
    opened = Workspace()
    scratch = opened.root.parent
    assert scratch.is_dir() and FILES not in scratch.parents
    opened.close()
    opened.close()
    assert not scratch.exists()


def test_the_copy_goes_at_the_end_of_a_with_block_whatever_ends_it():
    with pytest.raises(ZeroDivisionError), Workspace() as opened:
        raise ZeroDivisionError
    assert not opened.root.parent.exists()


def test_the_copy_goes_with_the_object_and_not_before():
    opened = Workspace()
    scratch, tools = opened.root.parent, opened.tools()
    del opened
    gc.collect()
    assert scratch.is_dir()  # its tools are still in use
    del tools
    gc.collect()
    assert not scratch.exists()


# The archive, and Stop

STEPS = [f"scanned {done} of 1200 files" for done in range(200, 1201, 200)]


def test_a_scan_takes_three_seconds_and_tells_of_its_progress(workspace):
    async def body():
        loop, told = asyncio.get_running_loop(), []

        def progress(label):
            told.append((loop.time(), label))

        scan = workspace.tools()[3]
        said = await call_tool(scan, {}, ToolContext(progress=progress))
        return said, told

    said, told = run_virtual(body)
    assert said == "Scanned 1200 files."
    assert [label for _, label in told] == STEPS
    assert [at for at, _ in told] == pytest.approx([0.5, 1, 1.5, 2, 2.5, 3])
    assert workspace.log == ["scan_archive"]


def test_a_stop_ends_the_scan_at_once(workspace):
    async def body():
        loop, stop, told = asyncio.get_running_loop(), Stop(), []
        loop.call_later(1.2, stop.set, "user pressed Stop")
        context = ToolContext(stop=stop, progress=told.append)
        with pytest.raises(Stopped, match="user pressed Stop"):
            await call_tool(workspace.tools()[3], {}, context)
        return loop.time(), told

    at, told = run_virtual(body)
    assert at == pytest.approx(1.2) and told == STEPS[:2]


def in_real_time(run, stop_after_s: float | None) -> tuple[float, list[str], str]:
    """A blocking scan in its thread: how long it took, its progress, its end."""

    async def body():
        stop, told = Stop(), []
        if stop_after_s is not None:
            loop = asyncio.get_running_loop()
            loop.call_later(stop_after_s, stop.set, "user pressed Stop")
        scan = Tool("scan", "Scan.", {}, run)
        began = time.monotonic()
        try:
            said = await call_tool(
                scan, {}, ToolContext(stop=stop, progress=told.append)
            )
        except Stopped as stopped:
            said = stopped.reason
        return time.monotonic() - began, told, said

    return asyncio.run(body())


def test_the_blocking_scan_does_the_same_work(workspace, monkeypatch):
    monkeypatch.setattr(workspace_module, "BATCH_S", 0.01)
    took_s, told, said = in_real_time(workspace.scan_archive_blocking, None)
    assert took_s >= 0.06 and told == STEPS and said == "Scanned 1200 files."
    assert workspace.log == ["scan_archive"]


def test_the_blocking_scan_polls_its_stop(workspace, monkeypatch):
    monkeypatch.setattr(workspace_module, "BATCH_S", 30)  # it would last three minutes
    took_s, told, said = in_real_time(workspace.scan_archive_blocking, 0.05)
    assert 0.05 <= took_s < 5
    assert told == [] and said == "user pressed Stop"


def test_the_deaf_scan_does_not(workspace, monkeypatch):
    monkeypatch.setattr(workspace_module, "BATCH_S", 0.05)
    took_s, told, said = in_real_time(workspace.scan_archive_deaf, 0.02)
    assert took_s >= 0.3  # to its end
    assert told == [] and said == "Scanned 1200 files."
