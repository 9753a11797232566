"""The last step into a file of the workspace, whoever changes the folder meanwhile.

The workspace resolves a name with its links, and looks whether it comes out inside.
Before the file is used somebody may put a link in its place. So the way is walked
once more from the folder down, and this time no link is followed (openat with
O_NOFOLLOW). Windows has no such walk: there the first look has to do.
"""

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from labkit.tools import PermanentToolError

WALKS = {os.open, os.unlink} <= os.supports_dir_fd and hasattr(os, "O_NOFOLLOW")
FOLDER = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_NOFOLLOW", 0)
# A pipe put in the place of a file must not keep us waiting for its other end.
FILE = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)


def read(root: Path, path: Path) -> str:
    """A file below `root`. PermanentToolError if there stands a link now, or no file
    (a device, a pipe), or one that has a second name elsewhere (a hard link)."""
    with folder_of(root, path) as place:
        file = os.open(path.name if WALKS else path, FILE, dir_fd=place)
        with open(file, encoding="utf-8") as opened:
            about = os.fstat(file)
            if not stat.S_ISREG(about.st_mode) or about.st_nlink > 1:
                raise PermissionError(path.name)
            return opened.read()


def delete(root: Path, path: Path) -> None:
    """Delete a file below `root`. A link in its place goes, and not its target."""
    with folder_of(root, path) as place:
        os.unlink(path.name if WALKS else path, dir_fd=place)


@contextmanager
def folder_of(root: Path, path: Path) -> Iterator[int | None]:
    """The folder of a path, open, reached over no link. An OSError on the way, or in
    the block, is a PermanentToolError that names the file and not this machine."""
    place = None
    try:
        if WALKS:
            place = os.open(root, FOLDER)
            for part in path.relative_to(root).parts[:-1]:
                inner = os.open(part, FOLDER, dir_fd=place)
                os.close(place)
                place = inner
        yield place
    except OSError:
        name = path.relative_to(root).as_posix()
        raise PermanentToolError(f"permission denied: {name}") from None
    finally:
        if place is not None:
            os.close(place)
