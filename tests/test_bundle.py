"""The bundle: the right wheels for each machine, and an installation without network.

The last test downloads and installs for this machine (`make test-bundle`).
"""

import argparse
import ast
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from labkit.bundle import command as bundle
from labkit.bundle import offline, wheels
from labkit.errors import ConfigError

ROOT = Path(__file__).resolve().parent.parent
LOCK = (ROOT / bundle.LOCK).read_text("utf-8")
MAC = wheels.Target("macos-arm64", "3.11")
LINUX = wheels.Target("linux-x86_64", "3.12")
WINDOWS = wheels.Target("windows-amd64", "3.13")


def command(*words):
    parser = argparse.ArgumentParser()
    bundle.add_arguments(parser)
    return parser.parse_args([str(word) for word in words])


def test_all_promised_machines_are_targets():
    assert len(wheels.targets()) == 15
    assert {target.system for target in wheels.targets("macos")} == {
        "macos-arm64", "macos-x86_64"
    }  # fmt: skip
    assert [t.python for t in wheels.targets("windows", "3.13")] == ["3.13"]


@pytest.mark.parametrize(
    "words, field", [(("amiga",), "only"), ((None, "3.10"), "python")]
)
def test_another_machine_is_refused_with_the_choices(words, field):
    with pytest.raises(ConfigError, match="choose of") as caught:
        wheels.targets(*words)
    assert caught.value.field == field


def test_markers_are_those_of_the_target_and_not_of_this_machine():
    names = {
        target: {pin.partition("==")[0] for pin in wheels.pins(LOCK, target)}
        for target in (MAC, LINUX, WINDOWS)
    }
    assert {t for t in names if "appnope" in names[t]} == {MAC}
    assert {t for t in names if "colorama" in names[t]} == {WINDOWS}
    assert {t for t in names if "pexpect" in names[t]} == {MAC, LINUX}
    assert {t for t in names if "overrides" in names[t]} == {MAC}  # Python 3.11
    assert all("jupyterlab" in found for found in names.values())


@pytest.mark.parametrize(
    "tag, fits",
    [
        ("py3-none-any", {MAC, LINUX, WINDOWS}),
        ("cp311-cp311-macosx_11_0_arm64", {MAC}),
        ("cp39-abi3-macosx_10_12_universal2", {MAC}),
        ("cp311-cp311-macosx_14_0_arm64", set()),  # for later systems only
        ("cp311-cp311-macosx_11_0_x86_64", set()),
        ("cp312-cp312-manylinux2014_x86_64.manylinux_2_17_x86_64", {LINUX}),
        ("cp312-cp312-manylinux_2_34_x86_64", set()),
        ("cp312-cp312-musllinux_1_2_x86_64", set()),
        ("cp313-cp313-win_amd64", {WINDOWS}),
        ("cp313-cp313t-win_amd64", set()),  # the build without a lock
        ("cp313-cp313-win32", set()),
        ("cp310-cp310-win_amd64", set()),
    ],
)
def test_a_wheel_fits_where_it_runs(tmp_path, tag, fits):
    (tmp_path / f"Some_Thing-1.0-{tag}.whl").touch()
    pin = "some-thing==1.0"
    targets = {MAC, LINUX, WINDOWS}
    assert {t for t in targets if not wheels.absent([pin], t, tmp_path)} == fits
    assert wheels.absent(["some-thing==1.1"], MAC, tmp_path) == ["some-thing==1.1"]


def write_wheel(folder: Path, name: str, tag: str = "py3-none-any") -> None:
    """The smallest wheel that pip takes for one."""
    about = f"{name}-1.0.dist-info"
    with zipfile.ZipFile(folder / f"{name}-1.0-{tag}.whl", "w") as file:
        head = f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n"
        file.writestr(f"{about}/METADATA", head)
        file.writestr(f"{about}/WHEEL", f"Wheel-Version: 1.0\nTag: {tag}\n")
        file.writestr(f"{about}/RECORD", "")


@pytest.fixture
def shelf(tmp_path, monkeypatch):
    """A folder where pip looks, and nowhere else."""
    folder = tmp_path / "shelf"
    folder.mkdir()
    for name in [name for name in os.environ if name.startswith("PIP_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    return folder


def test_pip_fetches_for_another_machine_and_says_what_has_no_wheel(shelf, tmp_path):
    write_wheel(shelf, "pure")
    write_wheel(shelf, "built", "cp313-cp313-win_amd64")
    write_wheel(shelf, "elsewhere", "cp313-cp313-macosx_11_0_arm64")
    (shelf / "source-1.0.tar.gz").write_bytes(b"not a wheel")
    wanted = ["pure==1.0", "elsewhere==1.0", "built==1.0", "source==1.0"]
    into = tmp_path / "into"
    into.mkdir()
    assert wheels.fetch(wanted, WINDOWS, into) == ["elsewhere==1.0", "source==1.0"]
    got = [path.name for path in sorted(into.iterdir())]
    assert got == ["built-1.0-cp313-cp313-win_amd64.whl", "pure-1.0-py3-none-any.whl"]


def test_what_is_there_is_not_asked_for_again(tmp_path, monkeypatch):
    write_wheel(tmp_path, "pure")
    monkeypatch.setattr(wheels, "download", None)  # to call it would fail
    assert wheels.fetch(["pure==1.0"], MAC, tmp_path) == []


@pytest.mark.parametrize(
    "said",
    [
        "WARNING: Retrying (Retry(total=4\nERROR: No matching distribution found for"
        " pure==1.0",
        "ERROR: No space left on device",
    ],
)
def test_no_network_is_no_missing_wheel(tmp_path, monkeypatch, said):
    monkeypatch.setattr(wheels, "download", lambda *given: said)
    with pytest.raises(wheels.WheelError, match="pip could not fetch for macos-arm64"):
        wheels.fetch(["pure==1.0"], MAC, tmp_path)


def test_an_index_that_has_nothing_is_no_missing_wheel(tmp_path, monkeypatch):
    def none(wanted, target, folder):
        return f"ERROR: No matching distribution found for {wanted[0]}"

    monkeypatch.setattr(wheels, "download", none)
    with pytest.raises(wheels.WheelError, match="more than 10 packages"):
        wheels.fetch([f"p{n}==1" for n in range(50)], MAC, tmp_path)


@pytest.fixture
def packed(tmp_path, monkeypatch):
    """A bundle whose wheels are made of air, but for one that is missing."""

    def fetch(wanted, target, folder):
        write_wheel(folder, "pure")
        return ["rare==1.0"] if target == MAC else []

    monkeypatch.setattr(bundle, "fetch", fetch)
    out = tmp_path / "bundle"
    assert bundle.make(out, [MAC, LINUX]) == {MAC: ["rare==1.0"], LINUX: []}
    return out


def test_a_bundle_holds_the_project_the_installer_and_a_manifest(packed):
    assert (packed / "labkit" / "labkit" / "doctor.py").is_file()
    assert (packed / "install.py").read_text("utf-8") == (
        ROOT / "labkit" / "bundle" / "offline.py"
    ).read_text("utf-8")
    lines = (packed / "MANIFEST.sha256").read_text("utf-8").splitlines()
    names = {line.partition("  ")[2] for line in lines}
    files = {p.relative_to(packed).as_posix() for p in packed.rglob("*") if p.is_file()}
    assert names == files - {"MANIFEST.sha256"}
    assert offline.damaged(packed, "") == []


def test_its_readme_names_what_is_missing_and_what_mends_it(packed):
    said = (packed / "README.md").read_text("utf-8")
    mend = "`python3 -m pip wheel --no-deps rare==1.0`"
    assert f"- macos-arm64, Python 3.11: {mend}" in said
    assert bundle.NONE in bundle.readme({LINUX: []})


def test_a_damaged_or_lost_wheel_is_noticed_and_a_used_notebook_is_not(packed):
    wheel = packed / "wheels" / "pure-1.0-py3-none-any.whl"
    (packed / "labkit" / "README.md").write_text("mine", "utf-8")
    assert offline.damaged(packed) == []
    wheel.write_bytes(wheel.read_bytes()[:-1])
    assert offline.damaged(packed) == ["wheels/pure-1.0-py3-none-any.whl"]
    wheel.unlink()
    assert offline.damaged(packed) == ["wheels/pure-1.0-py3-none-any.whl"]


@pytest.mark.parametrize("held", [None, b"", b"\xff\xfe", b"no manifest\n"])
def test_a_manifest_that_is_lost_or_empty_vouches_for_nothing(packed, held):
    path = packed / "MANIFEST.sha256"
    path.unlink() if held is None else path.write_bytes(held)
    assert offline.damaged(packed) == ["MANIFEST.sha256"]


def test_half_a_bundle_is_not_installed(packed, monkeypatch):
    monkeypatch.setattr(offline, "HERE", packed)
    monkeypatch.setattr(offline, "install", lambda folder: pytest.fail("it began"))
    shutil.rmtree(packed / "labkit")
    said = "copy the folder again: labkit/requirements.lock"
    assert offline.main().endswith(said)


def test_an_environment_of_an_earlier_try_is_not_built_upon(packed, monkeypatch):
    steps = []
    monkeypatch.setattr(subprocess, "run", lambda step, **more: steps.append(step))
    offline.install(packed)
    assert "--clear" in steps[0] and len(steps) == 3


def test_a_bundle_can_be_renewed_and_drops_what_is_no_longer_pinned(packed):
    (packed / "labkit" / "stale.txt").touch()
    old = packed / "wheels" / "jupyterlab-1.0-py3-none-any.whl"
    write_wheel(packed / "wheels", "jupyterlab")
    bundle.make(packed, [LINUX])
    assert not old.exists() and not (packed / "labkit" / "stale.txt").exists()


def test_no_folder_is_overwritten_that_is_no_bundle_or_in_use(packed, tmp_path):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").touch()
    (packed / "labkit" / ".venv").mkdir()
    for folder in (tmp_path / "mine", packed):
        with pytest.raises(ConfigError, match="name another --out") as caught:
            bundle.make(folder, [LINUX])
        assert caught.value.field == "out"


@pytest.fixture
def project(tmp_path, monkeypatch):
    root = tmp_path / "project"
    (root / "out").mkdir(parents=True)
    for name in ("page.ipynb", "secret.env", ".gitignore", "out/big"):
        (root / name).write_text("out/\n", "utf-8")
    monkeypatch.setattr(bundle, "ROOT", root)
    return root


def test_only_what_git_knows_is_packed(project, tmp_path):
    for words in (["init", "-q"], ["add", "page.ipynb", ".gitignore"]):
        subprocess.run(["git", *words], cwd=project, check=True)
    bundle.copy_project(tmp_path / "b" / "labkit")
    copied = {path.name for path in (tmp_path / "b" / "labkit").iterdir()}
    assert copied == {"page.ipynb", ".gitignore"}


def test_outside_a_clone_all_is_packed_but_what_git_would_ignore(project, tmp_path):
    bundle.copy_project(tmp_path / "b" / "labkit")
    copied = {path.name for path in (tmp_path / "b" / "labkit").iterdir()}
    assert copied == {"page.ipynb", "secret.env", ".gitignore"}


def test_the_command_says_what_is_amiss(capsys, tmp_path):
    assert bundle.main(command("--only", "amiga", "--out", tmp_path)) == 1
    assert "choose of linux-x86_64" in capsys.readouterr().out


def test_the_installer_can_speak_to_an_old_python(monkeypatch):
    source = (ROOT / "labkit" / "bundle" / "offline.py").read_text("utf-8")
    ast.parse(source, feature_version=(3, 7))
    monkeypatch.setattr(offline, "OLDEST", (9, 0))
    assert offline.main().startswith("labkit needs Python 9.0 or later; this is 3.")


def test_no_setting_sends_pip_elsewhere():
    env = offline.clean({"PIP_INDEX": "x", "PYTHONPATH": "y", "HOME": "z"})
    assert env == {"HOME": "z", "PIP_CONFIG_FILE": os.devnull}


@pytest.mark.bundle
@pytest.mark.timeout(1800)
def test_it_installs_without_a_network(tmp_path):
    """For this machine. The wheels are kept in out/, so they are fetched once."""
    system = {"linux": "linux", "darwin": "macos", "win32": "windows"}[sys.platform]
    machine = os.uname().machine if hasattr(os, "uname") else "amd64"
    python = "{}.{}".format(*sys.version_info)
    if f"{system}-{machine}" not in wheels.SYSTEMS or python not in wheels.PYTHONS:
        pytest.skip(f"no bundle is made for {system}-{machine}, Python {python}")
    out = ROOT / "out" / "test-bundle"
    words = ["--only", f"{system}-{machine}", "--python", python, "--out", out]
    assert bundle.main(command(*words)) == 0
    for name in ("MANIFEST.sha256", "README.md", "install.py"):
        shutil.copy(out / name, tmp_path)
    for name in ("wheels", "labkit"):
        shutil.copytree(out / name, tmp_path / name)
    # Whoever would go out by a proxy meets a closed door; pip is told not to try.
    nowhere = dict.fromkeys(("http_proxy", "https_proxy"), "http://127.0.0.1:9")
    done = subprocess.run(
        [sys.executable, tmp_path / "install.py"], capture_output=True, text=True,
        env=os.environ | nowhere, cwd=tmp_path,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    said = done.stdout.splitlines()
    assert "ready" in said and not [line for line in said if line.startswith("missing")]
    where = "Scripts/python" if os.name == "nt" else "bin/python"
    code = "import labkit, mock; print(labkit.__file__)"
    asked = [tmp_path / "labkit" / ".venv" / where, "-c", code]
    found = subprocess.check_output(asked, cwd=tmp_path, text=True)
    assert Path(found.strip()).is_relative_to(tmp_path.resolve())
