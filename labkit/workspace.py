"""The catalogue of chapter 23: four tools over three small files.

The wording of prompts and descriptions is ours. It was fitted to one figure of the
chapter: messages and tools of the first request come to 204 tokens. The line in
errors.log was fitted to another: the third prompt of the scenario `plan` comes to
342. All other token counts follow from these two.
"""

import asyncio
import shutil
import tempfile
import time
import weakref
from os.path import isdir, isfile
from pathlib import Path

from labkit import jail
from labkit.tools import NO_PARAMETERS, PermanentToolError, Tool, ToolContext, ToolError

FILES = Path(__file__).resolve().parent.parent / "data" / "workspace"
SYSTEM = "You work on a folder of log files. Use the tools, then answer in a sentence."
TASK = "Which file mentions a timeout, and what does it say?"
PATH = {
    "type": "object",
    "properties": {"path": {"type": "string"}},
    "required": ["path"],
}
ARCHIVE_FILES, BATCH, BATCH_S = 1200, 200, 0.5  # three seconds for all of it


def opening(task: str = TASK, system: str = SYSTEM) -> list[dict]:
    """The two messages that a run starts with."""
    return [
        {"role": "system", "content": system},
        {"role": "user", "content": task},
    ]


def is_file(path: Path) -> bool:
    """Never an error, where `path.is_file()` may raise one for a name that is too
    long, and tell the model in which folder of this machine it works."""
    return isfile(path)


class Workspace:
    """The three files, in a scratch copy of their own, and the tools over them.

    No path leads out of it: not `..`, not an absolute one, not a link, nor one made
    while a tool runs (labkit.jail). `log` holds the calls that ran, `deleted` the
    paths of the deletions among them. The copy goes with `close()`, or with the object.
    """

    def __init__(self, log: list[str] | None = None):
        scratch = Path(tempfile.mkdtemp(prefix="labkit-")).resolve()
        self.close = weakref.finalize(self, shutil.rmtree, scratch, ignore_errors=True)
        self.root = scratch / "files"
        # The contents and not the modes: on a shared machine the originals may be
        # read-only, and the tools delete.
        self.root.mkdir()
        for path in FILES.iterdir():
            shutil.copyfile(path, self.root / path.name)
        self.log = [] if log is None else log

    @property
    def deleted(self) -> list[str]:
        return [each[12:] for each in self.log if each.startswith("delete_file:")]

    def __enter__(self) -> "Workspace":
        return self

    def __exit__(self, *error) -> None:
        self.close()

    def tools(self) -> list[Tool]:
        """The catalogue, in the order in which the model is told of it."""
        return [
            Tool(
                "list_files", "List the files of the workspace.",
                NO_PARAMETERS, self.list_files, read_only=True,
            ),
            Tool(
                "read_file", "Read one file, whole.",
                PATH, self.read_file, read_only=True,
            ),
            Tool(
                "delete_file", "Delete one of the files. A person must approve it.",
                PATH, self.delete_file, needs_approval=True,
            ),
            Tool(
                "scan_archive", "Scan the archive of old logs. It takes a while.",
                NO_PARAMETERS, self.scan_archive, read_only=True,
            ),
        ]  # fmt: skip

    async def list_files(self, args: dict, context: ToolContext) -> list[str]:
        self.log.append("list_files")
        return sorted(each.name for each in self.root.iterdir())

    async def read_file(self, args: dict, context: ToolContext) -> str:
        path = self._inside(args["path"])
        self.log.append(f"read_file:{args['path']}")
        if not is_file(path):
            said = f"no such file: {args['path']}. Call list_files to see what exists."
            raise ToolError(said)
        return jail.read(self.root, path)

    async def delete_file(self, args: dict, context: ToolContext) -> str:
        """Deleting what is gone already succeeds, as on most object stores."""
        path = self._inside(args["path"])
        self.log.append(f"delete_file:{args['path']}")
        if is_file(path):
            jail.delete(self.root, path)
        return f"Deleted {args['path']}."

    def _inside(self, name: str) -> Path:
        """The path of a file in the workspace, links followed."""
        try:
            path = (self.root / name).resolve()
        except (OSError, ValueError, RuntimeError):  # a NUL, a loop of links
            path = Path("/")
        if not path.is_relative_to(self.root) or isdir(path):
            raise PermanentToolError(f"permission denied: {name}")
        return path

    async def scan_archive(self, args: dict, context: ToolContext) -> str:
        """Slow on purpose, and well written: it sleeps where a Stop can reach it."""
        self.log.append("scan_archive")
        for done in range(BATCH, ARCHIVE_FILES + 1, BATCH):
            await asyncio.sleep(BATCH_S)
            context.progress(f"scanned {done} of {ARCHIVE_FILES} files")
        return f"Scanned {ARCHIVE_FILES} files."

    def scan_archive_blocking(self, args: dict, context: ToolContext) -> str:
        """The same without `await`, in a thread: it has to look for the Stop."""
        self.log.append("scan_archive")
        for done in range(BATCH, ARCHIVE_FILES + 1, BATCH):
            ends = time.monotonic() + BATCH_S
            while (left := ends - time.monotonic()) > 0:
                context.stop.check()
                time.sleep(min(left, 0.02))
            context.progress(f"scanned {done} of {ARCHIVE_FILES} files")
        return f"Scanned {ARCHIVE_FILES} files."

    def scan_archive_deaf(self, args: dict, context: ToolContext) -> str:
        """The same, and it never looks: Stop waits until it is done."""
        self.log.append("scan_archive")
        time.sleep(BATCH_S * ARCHIVE_FILES / BATCH)
        return f"Scanned {ARCHIVE_FILES} files."
