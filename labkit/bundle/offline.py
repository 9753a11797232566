"""Install labkit from this folder, without a network.

    python3 install.py          Linux, macOS
    py install.py               Windows

`make bundle` puts a copy of this file into the bundle, as install.py. It stands
alone: the standard library only, and nothing that an old Python could not read, since
it has to say to an old Python that it is too old.
"""

import hashlib
import os
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
OLDEST = (3, 11)
MANIFEST = "MANIFEST.sha256"


def damaged(folder, under="wheels/"):
    """Files of the manifest that are not as they were packed, or not there; the
    manifest itself, where it is not.

    Only those `under` a folder: the notebooks may have been worked on.
    """
    try:
        lines = (folder / MANIFEST).read_text("utf-8").splitlines()
    except (OSError, ValueError):
        return [MANIFEST]
    found, packed = [], 0
    for line in lines:
        digest, _, name = line.partition("  ")
        if name.startswith(under):
            packed += 1
            path = folder / name
            if not path.is_file() or sha256(path) != digest:
                found.append(name)
    return found if packed else [MANIFEST]  # it names nothing: that is not as packed


def sha256(path):
    """The digest of a file, in hex."""
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        for block in iter(lambda: file.read(1 << 20), b""):
            digest.update(block)
    return digest.hexdigest()


def clean(environ):
    """The environment for pip: no setting may send it to another place."""
    kept = {name: value for name, value in environ.items() if name[:4] != "PIP_"}
    kept.pop("PYTHONPATH", None)
    return dict(kept, PIP_CONFIG_FILE=os.devnull)


def install(folder):
    """Make labkit/.venv and fill it from wheels/. Returns the path of its Python."""
    project = folder / "labkit"
    where = ("Scripts", "python.exe") if os.name == "nt" else ("bin", "python")
    python = project / ".venv" / where[0] / where[1]
    pip = [str(python), "-m", "pip", "install", "--quiet", "--no-index", "--no-deps"]
    steps = [
        # Cleared: one that was left half made, or is of another Python, cannot be used.
        [sys.executable, "-m", "venv", "--clear", str(project / ".venv")],
        [*pip, "-f", str(folder / "wheels"), "-r", "requirements.lock"],
        [*pip, "--no-build-isolation", "--editable", "."],
    ]
    for step in steps:
        subprocess.run(step, cwd=str(project), env=clean(os.environ), check=True)
    return python


def main():
    """Install, and ask the doctor. Returns what to exit with: 0, or a complaint."""
    if sys.version_info < OLDEST:
        return "labkit needs Python {}.{} or later; this is {}.{}".format(
            *OLDEST, *sys.version_info[:2]
        )
    broken = damaged(HERE) or damaged(HERE, "labkit/requirements.lock")
    if broken:
        return "not as it was packed, copy the folder again: " + ", ".join(broken)
    print("Installing into labkit/.venv (a minute or two) ...")
    try:
        python = install(HERE)
    except subprocess.CalledProcessError:
        return "It was not installed: see above. README.md lists what is missing."
    status = subprocess.call([str(python), "-m", "labkit", "doctor"])
    begin = python.relative_to(HERE / "labkit")
    print(f"Start:  cd labkit  and  {begin} -m jupyterlab notebooks")
    return status


if __name__ == "__main__":
    sys.exit(main())
