"""The same call again: may it be answered from memory? (chapter 23)

Only a read may, and only if the run asks for it and the tool allows it: what is
polled changes by itself. An error is never kept, since the next try may succeed. All
is forgotten after a write, which may have changed what was read. It saves the tool's
run, not the turn: by the time the harness sees a repetition, it has been paid for.
"""

import json
from typing import Any

from labkit.state import RunState
from labkit.tools import Tool

# True: reads only. "everything" also swallows the second of two equal writes, which
# may well have been meant: it is here to be measured.
MODES = (False, True, "everything")


class Memory:
    """What the calls of a run have answered so far, kept in its state."""

    def __init__(self, state: RunState, mode: bool | str):
        self._kept, self._mode = state.remembered, mode

    def recall(self, tool: Tool, arguments: dict[str, Any]) -> str | None:
        """The answer of an equal call; None if this one has to run."""
        if not self._may_keep(tool):
            return None
        return self._kept.get(signature(tool, arguments))

    def learn(self, tool: Tool, arguments: dict[str, Any], content: str | None) -> None:
        """A call has run. `content`: its answer; None if it failed."""
        if self._mode != "everything" and not tool.read_only:
            self._kept.clear()
        elif self._may_keep(tool) and content is not None:
            self._kept[signature(tool, arguments)] = content

    def _may_keep(self, tool: Tool) -> bool:
        reads = tool.read_only or self._mode == "everything"
        return bool(self._mode) and tool.cacheable and reads


def signature(tool: Tool, arguments: dict[str, Any]) -> str:
    """What makes two calls equal: name and arguments, however those were written.

    >>> look = Tool("look", "", {}, run=print)
    >>> signature(look, {"b": 1, "a": 2}) == signature(look, {"a": 2, "b": 1})
    True
    """
    return f"{tool.name} {_sorted(arguments)}"


_sorted = json.JSONEncoder(sort_keys=True, separators=(",", ":")).encode
