"""The doctor: what it finds, what it says, and that it says how to mend it."""

import shutil
import socket
import subprocess
import sys

import pytest

import labkit
from labkit import doctor
from labkit.doctor import Finding


def test_this_machine_is_ready():
    missing = [found for found in doctor.examine() if not found.ok]
    assert not missing, doctor.report(missing)


def test_every_missing_finding_says_how_to_mend_it(tmp_path):
    changed = tmp_path / "changed"
    changed.write_bytes(b"IQ== 0\n")
    bad = [
        doctor.check_python((3, 10, 13)),
        doctor.check_package("no-such-package", "1.0"),
        doctor.check_package("httpx", "999"),
        doctor.check_ours("no_such_package"),
        doctor.check_ours("json"),
        doctor.check_vocabulary(tmp_path / "absent"),
        doctor.check_vocabulary(changed),
    ]
    assert [found.word for found in bad] == ["missing"] * len(bad)
    assert all(found.mend for found in bad)


def test_an_old_package_names_both_versions():
    said = doctor.check_package("httpx", "999").said
    assert said.endswith("needs 999 or later")


@pytest.mark.parametrize(
    "older, newer", [("0.9", "0.10"), ("3.0.0rc1", "3.1"), ("2026.10.19.post1", "2027")]
)
def test_versions_are_compared_by_number(older, newer):
    assert doctor.release(older) < doctor.release(newer)


def test_markers_pick_one_of_the_two_nest_asyncios():
    for python in ((3, 11), (3, 13), (3, 14), (3, 15)):
        old = doctor.applies("python_version < '3.14'", python)
        new = doctor.applies("python_version >= '3.14'", python)
        assert (old, new) == (python < (3, 14), python >= (3, 14))


def test_a_marker_it_cannot_read_is_refused():
    with pytest.raises(ValueError, match="python_version"):
        doctor.applies("sys_platform == 'win32'")


def test_a_port_in_use_is_a_note_and_no_failure():
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", 0))
        holder.listen()
        port = holder.getsockname()[1]
        found = doctor.check_port(port)
    assert (found.word, found.name) == ("note", f"port {port}")
    assert doctor.check_port(port).word == "ok"


def test_asking_about_the_results_folder_leaves_nothing_behind(tmp_path):
    assert doctor.check_results(tmp_path).ok
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_cannot_be_written_is_a_note(tmp_path):
    found = doctor.check_results(tmp_path / "absent")
    assert found.word == "note" and "--out" in found.mend


def test_check_prints_one_line_without_a_path_when_all_is_well(capsys):
    labkit.check()
    said = capsys.readouterr().out
    python = f"{sys.version_info[0]}.{sys.version_info[1]}"
    assert said == f"ready: Python {python}, labkit 0.1, 9 packages\n"


def test_check_prints_only_what_is_missing(capsys, monkeypatch):
    found = [
        Finding("httpx", True, "0.28.1"),
        Finding("port 8787", True, "in use", "stop the other"),
        Finding("pandas", False, "not installed", "make setup"),
    ]
    monkeypatch.setattr(doctor, "examine", lambda: found)
    labkit.check()
    assert capsys.readouterr().out.split() == (
        "missing pandas not installed -> make setup".split()
    )


def test_main_exits_1_if_something_is_missing(capsys, monkeypatch):
    assert doctor.main() == 0
    assert capsys.readouterr().out.endswith("\nready\n")
    monkeypatch.setattr(doctor, "examine", lambda: [Finding("x", False, "no", "do")])
    assert doctor.main() == 1
    assert capsys.readouterr().out.endswith("\n1 missing\n")


def test_the_doctor_runs_where_no_package_is_installed(tmp_path):
    """With the standard library alone it must list what is missing, not fall over."""
    shutil.copytree(doctor.ROOT / "labkit", tmp_path / "labkit")
    shutil.copy(doctor.ROOT / "pyproject.toml", tmp_path)
    run = subprocess.run(
        [sys.executable, "-S", "-m", "labkit", "doctor"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert run.returncode == 1, run.stderr
    assert run.stderr == ""
    for name in ("pandas", "httpx", "mock", "vocabulary"):
        assert f"missing  {name}" in run.stdout


def test_an_unknown_command_is_refused_with_the_known_ones():
    run = subprocess.run(
        [sys.executable, "-m", "labkit", "docter"],
        cwd=doctor.ROOT,
        capture_output=True,
        text=True,
    )
    assert run.returncode == 2
    assert "'doctor'" in run.stderr
