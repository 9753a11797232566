"""`python -m labkit notebooks`: run every notebook, refresh or check its outputs.

Each notebook runs in a kernel of its own, from top to bottom. What is written back
holds nothing of the machine or the moment: no times, no versions, no paths. So a
second refresh changes nothing but the cells tagged `real-time`, and `--check` can
compare all the others with what is committed.
"""

import argparse
import os
import re
import subprocess
import tempfile
from pathlib import Path

from labkit.errors import LabkitError
from labkit.outputs import blemishes, differences

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "notebooks"
TIMEOUT_S = 180  # for one cell

KERNELSPEC = {
    "display_name": "Python 3 (ipykernel)",
    "language": "python",
    "name": "python3",
}
CONTROLS = "application/vnd.jupyter.widget-view+json"
KEPT = ("tags", "nbgrader", "editable", "deletable")  # of a cell's metadata


class NotebookError(LabkitError):
    """A notebook did not run to its end, or cannot be read."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--check", action="store_true", help="write nothing, compare the outputs"
    )
    parser.add_argument("--only", metavar="NN", help="one: its number, or primer")


def main(args: argparse.Namespace) -> int:
    """0 when every notebook ran and, with --check, shows what is committed."""
    paths = find(args.only)
    if not paths:
        print("no such notebook; there are:", *(p.name for p in find()), sep="\n  ")
        return 1
    failed = 0
    for path in paths:
        complaints = check(path) if args.check else refresh(path)
        print(f"{path.name}: {'failed' if complaints else 'ok'}", flush=True)
        print(*complaints, sep="\n\n", end="\n" if complaints else "", flush=True)
        failed += bool(complaints)
    return 1 if failed else 0


def find(number: str | None = None) -> list[Path]:
    """The numbered notebooks in reading order, then primers; or those of one name.

    `number`: what a name begins with, up to its first underscore ("03", "primer").
    """
    names = [number] if number else ["[0-9][0-9]", "primer"]
    return [path for name in names for path in sorted(FOLDER.glob(f"{name}_*.ipynb"))]


def refresh(path: Path) -> list[str]:
    """Run a notebook and write it back. Returns what is wrong; then writes nothing."""
    import nbformat

    try:
        fresh = execute(read(path))
    except NotebookError as error:
        return [str(error)]
    complaints = blemishes(fresh)
    if not complaints:
        text = nbformat.writes(fresh) + "\n"
        path.write_text(text, encoding="utf-8", newline="\n")
    return complaints


def check(path: Path) -> list[str]:
    """Run a notebook; say what is wrong with it, or other than committed."""
    try:
        committed = read(path)
        fresh = execute(read(path))
    except NotebookError as error:
        return [str(error)]
    return blemishes(fresh) + differences(committed, fresh)


def read(path: Path):
    import nbformat

    try:
        return nbformat.read(path, as_version=4)
    except (OSError, ValueError) as error:  # NotJSONError is a ValueError
        raise NotebookError(f"{path.name} is no notebook: {error}") from None


def execute(notebook):
    """Run it in a new kernel and return it normalised. Raises NotebookError."""
    from nbclient import NotebookClient, exceptions

    client = NotebookClient(
        notebook,
        kernel_name=KERNELSPEC["name"],
        timeout=TIMEOUT_S,
        record_timing=False,
        coalesce_streams=True,
        extra_arguments=["--log-level=ERROR"],  # it warns of its own loopback ports
        resources={"metadata": {"path": str(FOLDER)}},
    )
    # What a cell writes comes back as its output. The kernel's own standard error is
    # something else: it may complain of its tasks when it is told to end.
    own = subprocess.DEVNULL
    with tempfile.TemporaryDirectory() as profile:
        try:
            client.execute(env=environment(profile), stderr=own)
        except exceptions.CellExecutionError as error:
            said = re.sub(r"\x1b\[[0-9;]*m", "", error.traceback)
            raise NotebookError(f"a cell failed:\n{said}") from None
        except exceptions.CellTimeoutError:
            said = f"a cell ran for more than {TIMEOUT_S} s"
            raise NotebookError(said) from None
        except exceptions.DeadKernelError:
            raise NotebookError("the kernel died") from None
    return normalise(notebook)


def environment(profile: str) -> dict[str, str]:
    """The kernel's: without progress bars, and deaf to the settings of a developer."""
    env = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("LLM_", "MPL", "PYTHONWARNINGS"))
    }
    quiet = {"TQDM_DISABLE": "1", "PYDEVD_DISABLE_FILE_VALIDATION": "1"}
    return env | quiet | {"IPYTHONDIR": profile}  # no start-up files, no history


def normalise(notebook):
    """Drop what depends on the machine or on who edited last. So do controls: their
    ids are new each time, and they are dead on a page that is only looked at."""
    notebook.metadata = type(notebook.metadata)(
        kernelspec=KERNELSPEC, language_info={"name": "python"}
    )
    for cell in notebook.cells:
        for name in list(cell.metadata):
            if name not in KEPT:
                del cell.metadata[name]
        if cell.cell_type == "code":
            cell.outputs = [
                each for each in cell.outputs if CONTROLS not in each.get("data", {})
            ]
    return notebook
