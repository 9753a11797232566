"""A run is data: everything about it, in one object that goes through JSON whole.

The loop is a function over this object (chapter 23). Whoever has the file can go on
with the run: after a crash, after a person's decision, in another process.
"""

import uuid
from collections.abc import Iterable
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from labkit.errors import LabkitError, shorten
from labkit.pricing import add, money
from labkit.strictjson import as_object, encode, parse_object
from labkit.toolcalls import ToolCall
from labkit.transcript import Message, calls_of, pending_calls

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
    unpriced_turns: turns whose cost is not known, and not in `cost`: the provider
        left out the usage, or nobody has said a price, or the turn was cut off.
    asking: the idempotency key of the turn that was sent and has no answer yet; after
        a crash it says that one may have been lost.
    approvals, rejections: a person's decisions about pending calls.
    started: ids of the writes that were begun and have no result yet.
    remembered: results of reads, if the run asks for dedupe.
    children: the subagents' runs, by the id of the call.
    output: the answer; a run that has one is over, and asks no more.
    error: why it failed.
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
        return encode(as_dict(self))

    @classmethod
    def from_json(cls, text: str, path: str | None = None) -> "RunState":
        """The run in `text`. StateError names the file and says what is wrong."""
        try:
            return from_dict(parse_object(text))
        except ValueError as error:
            said = str(error) if text.strip() else "it is empty"
            raise StateError(
                f"cannot read {path or 'this state'}: {said}. Nothing was changed;"
                " restore a copy of the file, or move it away and start a new run",
                path=path,
                offset=getattr(error, "pos", None),
            ) from None


def new_run(
    model: str,
    prompt: str | list[Message],
    system: str | None = None,
    run_id: str | None = None,
) -> RunState:
    """A run that has not begun.

    prompt: what the user asks; or the whole list of messages to begin with.
    run_id: must be new to the provider too: the idempotency keys are made from it.
    """
    asked = [{"role": "user", "content": prompt}] if isinstance(prompt, str) else prompt
    told = [] if system is None else [{"role": "system", "content": system}]
    return RunState(run_id or f"run-{uuid.uuid4().hex[:12]}", model, [*told, *asked])


def pending(state: RunState) -> list[ToolCall]:
    """The calls that the model has asked for and nobody has answered."""
    return pending_calls(state.messages)


def as_dict(state: RunState) -> dict[str, Any]:
    """What goes into the file. The name and the revision first: see RunStore.save."""
    head = {"version": VERSION, "run_id": state.run_id, "revision": state.revision}
    rest = vars(state) | {
        "own_cost": str(state.own_cost),
        "children": {id: as_dict(child) for id, child in state.children.items()},
    }
    return head | rest


DEPTH = 150  # of subagents in subagents: more than a loop could have gone down


def from_dict(found: dict[str, Any], depth: int = 0) -> RunState:
    """The reverse. ValueError for anything that `as_dict` cannot have written."""
    if depth > DEPTH:
        raise ValueError(f"it has subagents in subagents, over {DEPTH} deep")
    found = dict(found)
    version = found.pop("version", None)
    if type(version) is int and version > VERSION:
        raise ValueError(
            f"it has version {version}, and this labkit reads up to {VERSION}: update"
            " labkit"
        )
    if type(version) is not int or version != VERSION:
        raise ValueError(f"it is no state of a run: its version is {version!r}")
    if found.keys() != KINDS.keys():
        wrong = shorten(", ".join(sorted(found.keys() ^ KINDS.keys())))
        raise ValueError(f"it is no state of a run: missing or unknown: {wrong}")
    for name, kinds in KINDS.items():
        if type(found[name]) not in kinds:
            kind = type(found[name]).__name__
            raise ValueError(f"`{name}` is of type {kind}, not {kinds[0].__name__}")
    check(found)
    children = found["children"].items()
    return RunState(
        **found
        | {
            "own_cost": money(found["own_cost"], "own_cost"),
            "children": {
                id: from_dict(as_object(child), depth + 1) for id, child in children
            },
        }
    )


# field -> the types it may have in a file
KINDS: dict[str, tuple[type, ...]] = {
    **dict.fromkeys(("run_id", "model", "status", "own_cost"), (str,)),
    **dict.fromkeys(("messages", "approvals", "rejections", "started"), (list,)),
    **dict.fromkeys(("asking", "output", "error"), (str, type(None))),
    **dict.fromkeys(("interruption", "limits"), (dict, type(None))),
    **dict.fromkeys(("remembered", "children"), (dict,)),
    **dict.fromkeys(("turns", "tool_runs", "prompt_tokens", "revision"), (int,)),
    **dict.fromkeys(("completion_tokens", "context_tokens", "unpriced_turns"), (int,)),
}


def check(found: dict[str, Any]) -> None:
    """What the loop relies on, one level deeper. ValueError names what is wrong."""
    if found["status"] not in STATUSES:
        raise ValueError(f"`status` is {found['status']!r}, not one of {STATUSES}")
    for at, message in enumerate(found["messages"]):
        if not isinstance(message, dict) or not isinstance(message.get("role"), str):
            raise ValueError(f"`messages[{at}]` is no message with a role")
        if not is_whole(message):
            raise ValueError(f"`messages[{at}]` is torn: {message!r:.80}")
    for name, needed in (("approvals", CALL), ("rejections", CALL | {"words"})):
        for each in found[name]:
            if not isinstance(each, dict) or not needed <= each.keys():
                raise ValueError(f"`{name}` holds something that names no call")
            if not all_text(each[key] for key in needed):
                raise ValueError(f"`{name}` holds something that is no text")
    for name, values in (
        ("started", found["started"]),
        ("remembered", found["remembered"].values()),
        ("interruption", [(found["interruption"] or {"type": ""}).get("type")]),
    ):
        if not all_text(values):
            raise ValueError(f"`{name}` holds something that is no text")
    for name, kinds in KINDS.items():
        if kinds == (int,) and found[name] < 0:
            raise ValueError(f"`{name}` is {found[name]}: no count is below 0")
    if found["limits"] is not None and found["limits"].keys() != LIMITS:
        raise ValueError(f"`limits` must be {sorted(LIMITS)}, and nothing else")


CALL = {"call_id", "tool_name", "arguments"}  # what a decision is bound to
LIMITS = {"max_turns", "max_budget_usd"}


def is_whole(message: Message) -> bool:
    """Are its calls, or the call that it answers, named in text?"""
    try:
        calls = calls_of(message)
    except (LookupError, TypeError):
        return False
    answered = [message.get("tool_call_id")] if message["role"] == "tool" else []
    return all_text([*answered, *(each for c in calls for each in vars(c).values())])


def all_text(values: Iterable[Any]) -> bool:
    return all(isinstance(value, str) for value in values)
