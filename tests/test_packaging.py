"""pyproject, lock, conda's environment and the tracked files say the same thing."""

import hashlib
import re
import subprocess
import sys
import tomllib
from importlib import metadata
from pathlib import Path

import pytest
import yaml
from packaging.markers import default_environment
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name

from labkit import doctor
from labkit.__main__ import COMMANDS, find

ROOT = Path(__file__).resolve().parent.parent
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
PROJECT = PYPROJECT["project"]
EXTRAS = PROJECT["optional-dependencies"]


def read(name: str) -> str:
    return (ROOT / name).read_text("utf-8")


def parsed(lines) -> dict[str, Requirement]:
    found = [Requirement(line) for line in lines]
    return {canonicalize_name(wanted.name): wanted for wanted in found}


def pins(name: str) -> dict[str, Requirement]:
    return parsed(read(name).splitlines())


def version_of(pin: Requirement) -> str:
    (only,) = pin.specifier
    return only.version


WANTED = PROJECT["dependencies"] + EXTRAS["dev"] + PYPROJECT["build-system"]["requires"]


EXTRA_LOCKS = {
    f"requirements-{extra}.lock": EXTRAS[extra] for extra in ("local", "class")
}


@pytest.mark.parametrize("lock", ["requirements.lock", *EXTRA_LOCKS])
def test_a_lock_holds_pins_and_nothing_else(lock):
    lines = read(lock).splitlines()
    for line in lines:
        assert re.fullmatch(r"[a-z0-9-]+==[\w.]+( ; [\w.]+ \S+ \"[\w.]+\")?", line)
    assert lines == sorted(lines, key=lambda line: line.partition("==")[0])
    assert len(pins(lock)) == len(lines)


@pytest.mark.parametrize(
    "lock, wanted",
    [("requirements.lock", WANTED), *EXTRA_LOCKS.items()],
)
def test_the_lock_meets_every_bound(lock, wanted):
    locked = pins(lock)
    for line in wanted:
        requirement = Requirement(line)
        pin = locked[canonicalize_name(requirement.name)]
        assert requirement.specifier.contains(version_of(pin)), line


@pytest.mark.parametrize("lock", EXTRA_LOCKS)
def test_an_extra_stays_out_of_the_common_lock(lock):
    assert not set(pins("requirements.lock")) & set(pins(lock))


@pytest.mark.parametrize("python", ["3.11", "3.12", "3.13"])
@pytest.mark.parametrize(
    "system", [("linux", "Linux", "posix"), ("darwin", "Darwin", "posix"),
               ("win32", "Windows", "nt")], ids=lambda system: system[0],
)  # fmt: skip
def test_the_lock_is_complete(python, system):
    """It is installed with --no-deps, so what it leaves out would never arrive.

    Walks the requirements of the packages installed here with the markers of another
    system. Packages that only that system has cannot be walked, only looked for.
    """
    keys = ("sys_platform", "platform_system", "os_name")
    there = default_environment() | dict(zip(keys, system, strict=True))
    there |= {"python_version": python, "python_full_version": f"{python}.9"}
    locked = {
        name
        for name, pin in pins("requirements.lock").items()
        if pin.marker is None or pin.marker.evaluate(there)
    }
    todo = [(name, extra) for name, r in parsed(WANTED).items() for extra in [r.extras]
            if r.marker is None or r.marker.evaluate(there)]  # fmt: skip
    seen = set()
    while todo:
        name, extras = todo.pop()
        assert name in locked, f"{name} is wanted on {system[0]}, Python {python}"
        if (name, frozenset(extras)) in seen:
            continue
        seen.add((name, frozenset(extras)))
        try:
            lines = metadata.requires(name) or []
        except metadata.PackageNotFoundError:  # one that this system does not have
            continue
        for wanted in map(Requirement, lines):
            cases = [there | {"extra": extra} for extra in {"", *extras}]
            if wanted.marker is None or any(map(wanted.marker.evaluate, cases)):
                todo.append((canonicalize_name(wanted.name), wanted.extras))
    assert {name for name, _ in seen} == locked, "pinned, but nothing wants it"


def test_the_lock_of_a_class_is_complete():
    """Together with the common one: it is installed with --no-deps too."""
    pytest.importorskip("nbgrader", reason="needs `make setup-class`")
    both = pins("requirements.lock") | pins("requirements-class.lock")
    for name in pins("requirements-class.lock"):
        for wanted in map(Requirement, metadata.requires(name) or []):
            if wanted.marker is None or wanted.marker.evaluate({"extra": ""}):
                pin = both[canonicalize_name(wanted.name)]
                assert wanted.specifier.contains(version_of(pin)), f"{name}: {wanted}"


@pytest.mark.skipif(
    not (Path(sys.prefix) / ".ready").exists(), reason="not set up by make"
)
def test_what_is_installed_is_what_is_locked():
    here = [pin for pin in pins("requirements.lock").values()
            if pin.marker is None or pin.marker.evaluate()]  # fmt: skip
    found = {pin.name: metadata.version(pin.name) for pin in here}
    assert found == {pin.name: version_of(pin) for pin in here}


def test_the_lock_runs_on_the_oldest_python_that_is_promised():
    oldest = PROJECT["requires-python"].removeprefix(">=") + ".0"
    for pin in (pins("requirements.lock") | pins("requirements-class.lock")).values():
        try:
            needs = metadata.metadata(pin.name).get("Requires-Python", "")
        except metadata.PackageNotFoundError:  # of another system
            continue
        assert SpecifierSet(needs).contains(oldest), f"{pin} needs {needs}"


def test_environment_yml_has_the_runtime_packages_and_bounds_of_pyproject():
    environment = yaml.safe_load(read("environment.yml"))
    *conda, pip = environment["dependencies"]
    assert environment["channels"] == ["conda-forge"]
    assert pip == {"pip": ["-e ."]}
    ours = {
        name: str(wanted.specifier)
        for name, wanted in parsed(PROJECT["dependencies"]).items()
    }
    del ours["nest-asyncio2"]  # Python 3.14 on: pip adds it with labkit
    theirs = {name: str(r.specifier) for name, r in parsed(conda).items()}
    assert theirs.pop("python") == PROJECT["requires-python"]
    assert theirs.pop("pip") == ""
    assert theirs == ours


def test_the_doctor_asks_for_what_pyproject_asks_for():
    asked = dict(doctor.requirements())
    for name, wanted in parsed(PROJECT["dependencies"]).items():
        if wanted.marker is None or wanted.marker.evaluate():
            assert str(wanted.specifier) == f">={asked.pop(name)}"
    assert asked == {}
    assert PROJECT["requires-python"] == f">={'.'.join(map(str, doctor.PYTHON))}"
    assert set(doctor.REAL_MODEL) == set(parsed(EXTRAS["local"]))


def test_every_listed_package_exists_and_no_other():
    listed = set(PYPROJECT["tool"]["setuptools"]["packages"])
    there = {
        ".".join(found.parent.relative_to(ROOT).parts)
        for top in ("labkit", "mock")
        for found in (ROOT / top).rglob("__init__.py")
    }
    assert listed == there


def test_it_can_never_be_uploaded():
    assert "Private :: Do Not Upload" in PROJECT["classifiers"]


def test_the_vocabulary_is_the_published_one_and_git_leaves_it_alone():
    content = (ROOT / doctor.VOCABULARY).read_bytes()
    digest = hashlib.sha256(content).hexdigest()
    assert digest == doctor.VOCABULARY_SHA256
    assert digest in read("data/tiktoken/NOTICE.md")
    assert f"{doctor.VOCABULARY} -text" in read(".gitattributes").splitlines()


def test_every_command_of_labkit_can_be_run():
    for name, (place, said) in COMMANDS.items():
        command = find(place)
        assert callable(command.add_arguments) and callable(command.main), name
        assert said and "\n" not in said


def tracked() -> list[Path]:
    """What git knows or would add. Empty outside a clone."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
    )
    names = listed.stdout.decode().split("\0") if listed.returncode == 0 else []
    return [ROOT / name for name in names if name and (ROOT / name).is_file()]


# Written in pieces, so that this file passes its own test.
MACHINE_PATH = re.compile(
    r"(?<![\w.:/])/(?:" + "|".join(["wo" + "rk", "ro" + "ot", "ho" + "me", "t" + "mp",
                                    "Us" + "ers", "o" + "pt"]) + r")/\w"
)  # fmt: skip
INDEX = re.compile("|".join(["index" + "-url", "find" + "-links", "trusted" + "-host"]))


def test_no_tracked_file_names_a_path_of_this_machine_or_a_package_index():
    files = tracked()
    if not files:
        pytest.skip("not a git clone: the tracked files are not known")
    faults = []
    for path in files:
        content = path.read_bytes()
        if b"\0" in content or path.name == Path(doctor.VOCABULARY).name:
            continue
        lines = content.decode("utf-8", "replace").splitlines()
        for number, line in enumerate(lines, 1):
            if MACHINE_PATH.search(line) or INDEX.search(line):
                faults.append(f"{path.relative_to(ROOT)}:{number}: {line.strip()[:80]}")
    assert not faults, "\n".join(faults)


SET_UP_FILES = ["requirements.lock", *EXTRA_LOCKS, "environment.yml",
                "pyproject.toml", "Makefile", ".ci/run"]  # fmt: skip


@pytest.mark.parametrize("name", SET_UP_FILES)
def test_set_up_fetches_by_name_from_wherever_pip_is_set_to(name):
    assert "://" not in read(name)


def test_import_labkit_is_quick():
    """Half a second with room to spare: the best of three, Python's start included."""
    code = "import time; t = time.perf_counter(); import labkit; "
    code += "print(time.perf_counter() - t)"
    took_s = min(
        float(subprocess.check_output([sys.executable, "-c", code], cwd=ROOT))
        for _ in range(3)
    )
    assert took_s < 0.5


def test_a_script_beside_the_clone_can_import_labkit(tmp_path):
    """The clone's own folder is called labkit too, and must not hide the package."""
    (tmp_path / "labkit").mkdir()
    script = "from labkit import ChatClient; import mock.plan"
    command = [sys.executable, "-c", script]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
