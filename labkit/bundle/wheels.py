"""Wheels for machines that are not this one: which are needed, and fetching them.

pip evaluates the markers of a lock for the Python that runs it, so the lock is read
here, for each target, and pip is handed plain pins and the tags to look for.
"""

import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from packaging.requirements import Requirement
from packaging.tags import Tag, compatible_tags, cpython_tags, mac_platforms
from packaging.utils import (
    InvalidWheelFilename,
    canonicalize_name,
    parse_wheel_filename,
)

from labkit.errors import ConfigError, LabkitError, shorten

PYTHONS = ("3.11", "3.12", "3.13")
MANY = 10  # more than this cannot be missing: something else is wrong


class WheelError(LabkitError):
    """pip could not fetch: no network, or an index that does not answer."""


def manylinux(machine: str) -> list[str]:
    """glibc 2.28 (2018) and older: what a distribution that is still in use can run."""
    newest_first = [f"manylinux_2_{minor}_{machine}" for minor in range(28, 4, -1)]
    return [*newest_first, f"manylinux2014_{machine}", f"linux_{machine}"]


def macos(machine: str) -> list[str]:
    """macOS 11 (2020): what it can run, every later one can."""
    return list(mac_platforms((11, 0), machine))


# name -> (sys_platform, platform_system, os_name, platform_machine, platform tags)
SYSTEMS = {
    "linux-x86_64": ("linux", "Linux", "posix", "x86_64", manylinux("x86_64")),
    "linux-aarch64": ("linux", "Linux", "posix", "aarch64", manylinux("aarch64")),
    "macos-arm64": ("darwin", "Darwin", "posix", "arm64", macos("arm64")),
    "macos-x86_64": ("darwin", "Darwin", "posix", "x86_64", macos("x86_64")),
    "windows-amd64": ("win32", "Windows", "nt", "AMD64", ["win_amd64"]),
}


@dataclass(frozen=True)
class Target:
    """One kind of machine: a name of SYSTEMS, and a Python ("3.11")."""

    system: str
    python: str

    def __str__(self) -> str:
        return f"{self.system}, Python {self.python}"

    @property
    def markers(self) -> dict[str, str]:
        """What a marker of the lock may ask about."""
        platform, system, os_name, machine, _ = SYSTEMS[self.system]
        return {
            "sys_platform": platform,
            "platform_system": system,
            "os_name": os_name,
            "platform_machine": machine,
            "python_version": self.python,
            "python_full_version": f"{self.python}.0",
            "implementation_name": "cpython",
            "platform_python_implementation": "CPython",
        }

    @property
    def platforms(self) -> list[str]:
        return SYSTEMS[self.system][-1]

    @property
    def tags(self) -> frozenset[Tag]:
        """The tags of every wheel that runs there."""
        version = tuple(map(int, self.python.split(".")))
        name = "cp{}{}".format(*version)
        return frozenset(
            [
                *cpython_tags(version, [name], self.platforms),
                *compatible_tags(version, name, self.platforms),
            ]
        )


def targets(only: str | None = None, python: str | None = None) -> list[Target]:
    """All targets, or those whose system begins with `only` and have this Python.

    >>> [str(target) for target in targets("windows", "3.12")]
    ['windows-amd64, Python 3.12']

    Raises ConfigError for what is none of ours.
    """
    systems = [name for name in SYSTEMS if name.startswith(only or "")]
    if not systems:
        said = f"only is {only!r}: choose of {', '.join(SYSTEMS)}, or how they begin"
        raise ConfigError(said, field="only")
    if python not in (None, *PYTHONS):
        said = f"python is {python!r}: choose of {', '.join(PYTHONS)}"
        raise ConfigError(said, field="python")
    pythons = [python] if python else PYTHONS
    return [Target(system, each) for each in pythons for system in systems]


def pins(lock: str, target: Target) -> list[str]:
    """The lines of a lock that hold for a target, without their markers.

    >>> pins('a==1\\nb==2 ; sys_platform == "win32"', Target("macos-arm64", "3.11"))
    ['a==1']
    """
    wanted = [Requirement(line) for line in lock.splitlines() if line.strip()]
    return [
        f"{pin.name}{pin.specifier}"
        for pin in wanted
        if pin.marker is None or pin.marker.evaluate(target.markers)
    ]


def wheels(folder: Path) -> Iterator[tuple[Path, str, frozenset[Tag]]]:
    """Each wheel of a folder: its path, its pin, and its tags."""
    for path in sorted(folder.glob("*.whl")):
        try:
            name, version, _, tags = parse_wheel_filename(path.name)
        except InvalidWheelFilename:
            continue
        yield path, f"{name}=={version}", tags


def absent(wanted: Sequence[str], target: Target, folder: Path) -> list[str]:
    """The pins for which the folder has no wheel that runs on the target."""
    fit = target.tags
    there = {pin for _, pin, tags in wheels(folder) if tags & fit}
    return [pin for pin in wanted if canonical(pin) not in there]


def canonical(pin: str) -> str:
    """
    >>> canonical("Jinja2==3.1.6")
    'jinja2==3.1.6'
    """
    name, _, version = pin.partition("==")
    return f"{canonicalize_name(name)}=={version}"


def fetch(wanted: Sequence[str], target: Target, folder: Path) -> list[str]:
    """Have pip download what is absent. Returns the pins that have no wheel for it.

    What the folder holds is not asked for again. Raises WheelError in pip's words.
    """
    none: list[str] = []
    while todo := [p for p in absent(wanted, target, folder) if p not in none]:
        said = download(todo, target, folder)
        if said is None:
            left = absent(todo, target, folder)
            return [*none, *left]
        found = re.search(r"No matching distribution found for (\S+)", said)
        if found is None or found[1] not in todo or unreachable(said):
            raise WheelError(f"pip could not fetch for {target}: {last(said)}")
        none.append(found[1])
        if len(none) > MANY:
            raise WheelError(
                f"more than {MANY} packages have no wheel for {target}:"
                " is the index of this pip complete?"
            )
    return none


def download(wanted: Sequence[str], target: Target, folder: Path) -> str | None:
    """Run `pip download`. None if it fetched all, else what it complained of."""
    platforms = [f"--platform={platform}" for platform in target.platforms]
    command = [
        sys.executable, "-m", "pip", "download", "--quiet", "--no-input",
        "--disable-pip-version-check", "--no-deps", "--only-binary=:all:",
        f"--dest={folder}", f"--python-version={target.python}",
        "--implementation=cp", *platforms, *wanted,
    ]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True)
    return done.stderr if done.returncode else None


def unreachable(said: str) -> bool:
    """Without a network pip also says that nothing matches, and before it, why."""
    return "Retrying (" in said or "Could not fetch URL" in said


def last(said: str) -> str:
    lines = [line for line in said.splitlines() if line.startswith("ERROR")]
    return shorten(lines[-1] if lines else said)
