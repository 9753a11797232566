"""A run is data: everything about it, in one object that goes through JSON whole.

The loop is a function over this object (chapter 23). Whoever has the file can go on
with the run: after a crash, after a person's decision, in another process.
"""

import json
import uuid
from dataclasses import dataclass, field, fields
from decimal import Decimal, InvalidOperation
from typing import Any

from labkit.errors import LabkitError
from labkit.pricing import add
from labkit.strictjson import parse_object
from labkit.toolcalls import ToolCall
from labkit.transcript import Message, pending_calls

VERSION = 1

STATUSES = (
    "running", "completed", "failed", "max_turns_exceeded", "budget_exceeded",
    "interrupted",
)  # fmt: skip


class StateError(LabkitError):
    """A state that cannot be used as asked: says which, why, and what to do.

    path: the file, where there is one. offset: the character, where that is known.
    """

    def __init__(self, message: str, *, path: str | None = None, offset=None):
        super().__init__(message)
        self.path = path
        self.offset = offset


@dataclass
class RunState:
    """One run.

    run_id: its name. A subagent's is its parent's, a dot, and the call's id.
    model: the model that is asked.
    messages: the transcript.
    status: "running" is also what a killed run's file says.
    interruption: why it stopped, as data: {"type": ...} and what belongs to it.
    turns, tool_runs: how often the model was asked, and a tool was run.
    prompt_tokens, completion_tokens: summed over the turns.
    context_tokens: prompt and reply of the last turn.
    own_cost: US dollars, without the subagents; `cost` includes them.
    unpriced_turns: turns whose cost is not known, and not in `cost`.
    asking: the idempotency key of the turn that was sent and has no answer yet.
    approvals, rejections: a person's decisions about pending calls.
    started: ids of the writes that were begun and have no result yet.
    remembered: results of reads, if the run asks for dedupe.
    children: the subagents' runs, by the id of the call.
    output: the answer. error: why it failed.
    limits: the caps of the last `run`, as RunLimits.as_dict() has them.
    revision: how often it was saved.
    """

    run_id: str
    model: str
    messages: list[Message]
    status: str = "running"
    interruption: dict[str, Any] | None = None
    turns: int = 0
    tool_runs: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    context_tokens: int = 0
    own_cost: Decimal = Decimal(0)
    unpriced_turns: int = 0
    asking: str | None = None
    approvals: list[dict[str, Any]] = field(default_factory=list)
    rejections: list[dict[str, Any]] = field(default_factory=list)
    started: list[str] = field(default_factory=list)
    remembered: dict[str, str] = field(default_factory=dict)
    children: dict[str, "RunState"] = field(default_factory=dict)
    output: str | None = None
    error: str | None = None
    limits: dict[str, Any] | None = None
    revision: int = 0

    @property
    def cost(self) -> Decimal:
        """US dollars spent so far, subagents included."""
        if not self.children:
            return self.own_cost
        return add(self.own_cost, *(child.cost for child in self.children.values()))

    @property
    def resumable(self) -> bool:
        """Can it go on? Three of the five exits can, and a run that was killed."""
        return self.status not in ("completed", "failed")

    def to_json(self) -> str:
        """The whole run, as one line of ASCII."""
        return json.dumps(_as_dict(self), allow_nan=False, separators=(",", ":"))

    @classmethod
    def from_json(cls, text: str, path: str | None = None) -> "RunState":
        """The run in `text`. StateError says what is wrong with the file."""
        try:
            return _from_dict(parse_object(text))
        except ValueError as error:
            offset = getattr(error, "pos", None)
        except StateError as error:
            error.path = path
            error.args = (_located(str(error), path),)
            raise
        what = "is empty" if not text.strip() else f"is no state of a run: {error_}"
        raise StateError(_located(what, path), path=path, offset=offset)


def new_run(
    model: str, prompt: str, system: str | None = None, run_id: str | None = None
) -> RunState:
    """A run that has not begun.

    run_id: must be new to the provider too: the idempotency keys are made from it.
    """
    messages = [{"role": "system", "content": system}] if system is not None else []
    messages.append({"role": "user", "content": prompt})
    return RunState(run_id or f"run-{uuid.uuid4().hex[:12]}", model, messages)


def pending(state: RunState) -> list[ToolCall]:
    """The calls that the model has asked for and nobody has answered."""
    return pending_calls(state.messages)
