"""`python -m labkit bundle`: labkit for machines without a network.

A folder to copy, or to carry on a stick: the project, the wheels of everything that
requirements.lock pins, for each system and Python that we promise, a manifest, and
install.py, which needs nothing but Python. Made where there is a network; a second
time it fetches only what is not there yet.
"""

import argparse
import shutil
import subprocess
from pathlib import Path

from labkit.bundle import offline
from labkit.bundle.wheels import Target, canonical, fetch, pins, targets, wheels
from labkit.errors import ConfigError, LabkitError

ROOT = Path(__file__).resolve().parents[2]
LOCK = "requirements.lock"
OUT = ROOT / "out" / "bundle"
PROJECT = "labkit"  # the name of the project's folder in the bundle

README = """\
# labkit, without a network

Made for: {targets}.

1. Copy this whole folder to your own disk.
2. Run `python3 install.py` in it (Linux, macOS), or `py install.py` (Windows). It looks
   whether every wheel is as it was packed, makes `labkit/.venv`, and says when it is
   ready. It takes a minute or two, and asks no other machine for anything.
3. In the folder `labkit`, run `.venv/bin/python -m jupyterlab notebooks`, or on Windows
   `.venv\\Scripts\\python -m jupyterlab notebooks`.

Linux needs glibc 2.28 or later (Debian 10, Ubuntu 20.04, RHEL 8); macOS, 11 or later.
To check all files: `sha256sum -c {manifest}`, on macOS `shasum -a 256 -c {manifest}`.
What is not in it: the real model (`make setup-local`), nbgrader (`make setup-class`).

## Missing wheels

{missing}
"""
NONE = "None: every package has a wheel for each of these."
MEND = """\
These packages have no wheel for these machines. Where there are a network and a
compiler, on such a machine and with its Python, run the line, and put the file that
it makes into `wheels/` here; then install.

"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--only", metavar="SYSTEM", help="linux, macos, windows, or as linux-x86_64"
    )
    parser.add_argument("--python", metavar="3.N", help="for one Python, as 3.12")
    parser.add_argument("--out", type=Path, default=OUT, metavar="FOLDER")


def main(args: argparse.Namespace) -> int:
    """0 when the bundle is made. What has no wheel is named, in its README too."""
    try:
        missing = make(args.out, targets(args.only, args.python))
    except LabkitError as error:
        print(error)
        return 1
    for target, lost in missing.items():
        for pin in lost:
            print(f"no wheel of {pin} for {target}: README.md says what mends it")
    size = sum(path.stat().st_size for path in args.out.rglob("*") if path.is_file())
    print(f"{args.out.name}: {size / 1e6:.0f} MB")
    return 0


def make(out: Path, chosen: list[Target]) -> dict[Target, list[str]]:
    """Make or renew the bundle. Returns the pins without a wheel, by target.

    Raises ConfigError where a folder that is no bundle would be overwritten, and
    WheelError when pip cannot fetch.
    """
    must_be_ours(out)
    folder = out / "wheels"
    folder.mkdir(parents=True, exist_ok=True)
    (out / offline.MANIFEST).touch()  # a bundle from here on, if half made
    lock = (ROOT / LOCK).read_text("utf-8")
    prune(folder, lock)
    missing = {}
    for target in chosen:
        wanted = pins(lock, target)
        missing[target] = fetch(wanted, target, folder)
        there = len(wanted) - len(missing[target])
        print(f"{target}: {there} of {len(wanted)} packages", flush=True)
    copy_project(out / PROJECT)
    shutil.copyfile(Path(offline.__file__), out / "install.py")
    (out / "README.md").write_text(readme(missing), "utf-8", newline="\n")
    write_manifest(out)
    return missing


def must_be_ours(out: Path) -> None:
    """Raises ConfigError unless `out` is new, empty, or a bundle nobody works in."""
    if (out / PROJECT / ".venv").exists():
        said = f"out: somebody has installed labkit in {out.name}; name another --out"
        raise ConfigError(said, field="out")
    ours = (out / offline.MANIFEST).is_file()
    if not ours and out.exists() and (not out.is_dir() or any(out.iterdir())):
        said = f"out: {out.name} is there and is no bundle; name another --out"
        raise ConfigError(said, field="out")


def prune(folder: Path, lock: str) -> None:
    """Remove the wheels of what is no longer pinned."""
    pinned = {canonical(line.partition(" ")[0]) for line in lock.splitlines()}
    for path, pin, _ in list(wheels(folder)):
        if pin not in pinned:
            path.unlink()


def copy_project(folder: Path) -> None:
    """The files that git knows, as they are now; nothing else that lies about.

    Outside a clone: all but what .gitignore names.
    """
    shutil.rmtree(folder, ignore_errors=True)
    command = ["git", "ls-files", "-z"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True).stdout.decode()
    names = [name for name in listed.split("\0") if (ROOT / name).is_file()]
    if not names:
        ignored = (ROOT / ".gitignore").read_text("utf-8").replace("/", "").split()
        left_out = shutil.ignore_patterns(".git", folder.parent.name, *ignored)
        shutil.copytree(ROOT, folder, ignore=left_out)
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, folder / name)


def readme(missing: dict[Target, list[str]]) -> str:
    """The bundle's README. It names what is missing, and how to get it."""
    lines = [
        f"- {target}: `python3 -m pip wheel --no-deps {pin}`"
        for target, lost in missing.items()
        for pin in lost
    ]
    return README.format(
        targets="; ".join(map(str, missing)),
        manifest=offline.MANIFEST,
        missing=MEND + "\n".join(lines) if lines else NONE,
    )


def write_manifest(out: Path) -> None:
    """One line a file, as `sha256sum` writes and reads it."""
    files = sorted(path for path in out.rglob("*") if path.is_file())
    lines = [
        f"{offline.sha256(path)}  {path.relative_to(out).as_posix()}\n"
        for path in files
        if path.name != offline.MANIFEST
    ]
    (out / offline.MANIFEST).write_text("".join(lines), "utf-8", newline="\n")
