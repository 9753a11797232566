"""A shared hub: several kernels at once, on one machine, from one checkout.

No page has a port or a file that another could be in the way of, and the checkout need
not be writable.
"""

import asyncio
import os
import stat
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient
from nbformat.v4 import new_code_cell

from labkit import notebooks, outputs, workspace

ROOT = Path(__file__).resolve().parent.parent
PORTS = notebooks.find("00")[0]  # starts a server
FILES = notebooks.find("06")[0]  # writes state files, starts and kills processes


def with_guesses(path: Path, student: str):
    """A page as a student runs it: at its end the guesses are saved."""
    page = notebooks.read(path)
    number = path.name[:2]
    cell = f'import labkit\nprint(labkit.save_guesses("{student}", "{number}"))'
    page.cells.append(new_code_cell(cell, id="save"))
    return page


async def run(page, folder: Path, home: Path):
    """Run a page in a kernel of its own, with temporary files of its own."""
    for name in ("tmp", "ipython"):
        (home / name).mkdir(parents=True)
    env = notebooks.environment(str(home / "ipython"))
    env |= {"TMPDIR": str(home / "tmp"), "TEMP": str(home / "tmp")}
    client = NotebookClient(
        nbformat.from_dict(page), kernel_name="python3", timeout=notebooks.TIMEOUT_S,
        resources={"metadata": {"path": str(folder)}}, record_timing=False,
        coalesce_streams=True, extra_arguments=["--log-level=ERROR"],
    )  # fmt: skip
    await client.async_execute(env=env, stderr=subprocess.DEVNULL)
    return client.nb


def run_together(*runs):
    async def together():
        return await asyncio.gather(*(run(*each) for each in runs))

    return asyncio.run(together())


def check(path: Path, fresh, home: Path, student: str) -> None:
    """It went as it goes alone, and left next to nothing behind."""
    last = fresh.cells.pop()
    assert f"guesses/{student.lower()}-{path.name[:2]}.json" in outputs.as_text(
        last.outputs[0]
    )
    assert outputs.blemishes(fresh) == []
    assert outputs.differences(notebooks.read(path), fresh) == []
    # A kernel that is slow to leave is ended, and cannot tidy up: the workspace that
    # its page still held may stay. Those of its processes and of former cells may not.
    assert len([*(home / "tmp").glob("labkit*")]) <= 1


@pytest.mark.timeout(900)
def test_two_users_each_with_a_copy(tmp_path):
    users = {name: tmp_path / name for name in ("Ada", "Ben")}
    for home in users.values():
        (home / "pages").mkdir(parents=True)
    fresh = run_together(*(
        (with_guesses(PORTS, name), home / "pages", home / "own")
        for name, home in users.items()
    ))  # fmt: skip
    for page, (name, home) in zip(fresh, users.items(), strict=True):
        check(PORTS, page, home / "own", name)
        assert [each.name for each in (home / "pages").iterdir()] == ["guesses"]


@pytest.mark.timeout(900)
def test_two_kernels_in_one_folder(tmp_path):
    folder = tmp_path / "pages"
    folder.mkdir()
    names = ("Ada", "Ben")
    fresh = run_together(
        *((with_guesses(FILES, name), folder, tmp_path / name) for name in names)
    )
    for page, name in zip(fresh, names, strict=True):
        check(FILES, page, tmp_path / name, name)
    assert [each.name for each in folder.iterdir()] == ["guesses"]
    sheets = sorted(each.name for each in (folder / "guesses").iterdir())
    assert sheets == ["ada-06.json", "ben-06.json"]


def test_two_runs_of_one_name_in_one_folder(tmp_path):
    """One has it, the other is told so; neither harms the file of the other."""
    words = "-m labkit run --scenario plan --id n1".split()
    env = os.environ | {"PYTHONPATH": str(ROOT)}
    both = [
        subprocess.Popen([sys.executable, *words], cwd=tmp_path, env=env, text=True,
                         stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        for _ in range(2)
    ]  # fmt: skip
    said = [each.communicate(timeout=120)[0] for each in both]
    assert sorted(each.returncode for each in both) == [0, 1], said
    loser = said[0 if both[0].returncode else 1]
    assert "n1" in loser and "Traceback" not in loser


def test_the_tools_can_delete_where_the_checkout_is_read_only(tmp_path, monkeypatch):
    """The scratch copy takes over the contents of the files, not their modes."""
    original = tmp_path / "workspace"
    original.mkdir()
    (original / "notes.txt").write_text("note", "utf-8")
    (original / "notes.txt").chmod(0o444)
    original.chmod(0o555)
    monkeypatch.setattr(workspace, "FILES", original)
    try:
        with workspace.Workspace() as work:
            for path in (work.root, work.root / "notes.txt"):
                assert path.stat().st_mode & stat.S_IWUSR, path.name
            assert (work.root / "notes.txt").read_text("utf-8") == "note"
    finally:
        original.chmod(0o755)
