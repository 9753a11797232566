"""Tools: what the model may ask for, and how its asking is read (chapter 23).

async def noon(args, context):
    return "12:00"

Tool("noon", "When is noon?", NO_PARAMETERS, noon, read_only=True)
"""

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from labkit.cancel import Stop
from labkit.errors import ConfigError, LabkitError, shorten
from labkit.strictjson import encode, parse_object


class ToolError(LabkitError):
    """What went wrong, in words for the model: it reads them and may mend it.

    Say what to do: "no such file: a.txt. Call list_files to see what exists."
    """


class PermanentToolError(ToolError):
    """What no model can mend, such as a missing permission: it ends the run."""


NO_PARAMETERS = {"type": "object", "properties": {}}


@dataclass(frozen=True)
class Tool:
    """One entry of the catalogue.

    parameters: the JSON Schema of the arguments: an object with properties.
    run: `async def run(args, context)`, or a plain function of the same, which gets
        a thread of its own. Gives back text, or anything that JSON can hold.
    read_only: changes nothing in the world. All others are writes: before one runs,
        the state on disk says so.
    needs_approval: a person is asked before each call.
    cacheable: may be answered from memory if the run asks for dedupe. False for what
        is polled, since its answer changes by itself.
    timeout_s: seconds until the model is told that it took too long; None: no limit.
    takes_key: the tool hands `context.idempotency_key` on to what does the work, or
        otherwise does nothing twice: after a crash it may simply be run again.
    """

    name: str
    description: str
    parameters: dict[str, Any]
    run: Callable[[dict[str, Any], "ToolContext"], Any]
    read_only: bool = False
    needs_approval: bool = False
    cacheable: bool = True
    timeout_s: float | None = None
    takes_key: bool = False


def _quiet(label: str) -> None:
    """Progress that nobody follows."""


@dataclass(frozen=True)
class ToolContext:
    """What a tool is told about its call.

    call_id, run_id: who asked.
    idempotency_key: the same each time this call is run, whatever died in between.
    stop: set when the user presses Stop or the time is up. Async tools are cancelled
        then; a blocking tool has to look: `context.stop.check()`.
    progress: `context.progress("scanned 200 of 1200 files")`, from any thread.
    host: the run that called, for a tool that is a run itself (labkit.subagent).
    """

    call_id: str = ""
    run_id: str = ""
    idempotency_key: str = ""
    stop: Stop = None
    progress: Callable[[str], None] = _quiet
    host: Any = None

    def __post_init__(self):
        if self.stop is None:
            object.__setattr__(self, "stop", Stop())


def catalogue(tools: Iterable[Tool]) -> list[dict[str, Any]]:
    """The `tools` array of a request. ConfigError where two have one name."""
    described = [
        {
            "type": "function",
            "function": {
                "name": tool.name,
                "description": tool.description,
                "parameters": tool.parameters,
            },
        }
        for tool in tools
    ]
    names = [each["function"]["name"] for each in described]
    for name in names:
        if not name or names.count(name) > 1:
            raise ConfigError(f"tools: {name!r} is empty or there twice", field="tools")
    return described


def read_arguments(text: str, tool: Tool) -> dict[str, Any]:
    """The arguments of a call. ValueError says in words for the model what is wrong.

    Empty text is no arguments: some models send it for a tool that needs none.

    >>> scan = Tool("scan", "Scan.", NO_PARAMETERS, run=print)
    >>> read_arguments("", scan)
    {}
    >>> read_arguments("[1]", scan)
    Traceback (most recent call last):
    ValueError: the arguments of scan must be one JSON object (a value of type list,
    not an object). It takes no arguments: send {}
    """
    try:
        arguments = parse_object(text) if text.strip() else {}
        writable(arguments)
    except ValueError as error:
        raise ValueError(
            f"the arguments of {tool.name} must be one JSON object ({error})."
            f" {how_to_call(tool)}"
        ) from None
    if faults := list(_faults(arguments, tool.parameters)):
        raise ValueError(f"{tool.name}: {', '.join(faults)}. {how_to_call(tool)}")
    return arguments


def writable(arguments: dict[str, Any]) -> None:
    """ValueError for what could be read but not be written into a state: 1e999 is
    read as infinity, which is no JSON, and nesting may be too deep by a few levels."""
    try:
        encode([[[[[[[[arguments]]]]]]]])
    except RecursionError:
        raise ValueError("nested too deeply") from None


def _faults(arguments: dict[str, Any], schema: dict[str, Any]) -> Iterable[str]:
    """What is missing, unknown or of a wrong type: the top level only."""
    known = schema.get("properties") or {}
    for name in schema.get("required") or ():
        if name not in arguments:
            yield f"{name} is missing"
    for name, value in arguments.items():
        if name not in known:
            if not schema.get("additionalProperties"):
                yield f"{shorten(name, 60)} is unknown"
            continue
        allowed = known[name]
        if not isinstance(allowed, dict):  # JSON Schema's `true`: anything
            continue
        if "type" in allowed and not fits(value, allowed["type"]):
            yield f"{name} must be of type {_named(allowed['type'])}"
        elif "enum" in allowed and value not in allowed["enum"]:
            yield f"{name} must be one of {json.dumps(allowed['enum'])}"


TYPES = {
    "string": str, "integer": int, "number": (int, float), "boolean": bool,
    "array": list, "object": dict, "null": type(None),
}  # fmt: skip


def fits(value: Any, kind: str | list[str]) -> bool:
    """Is `value` of this JSON Schema type? True is no number; an unknown type fits.

    >>> fits(3, "number"), fits(True, "integer"), fits(None, ["string", "null"])
    (True, False, True)
    """
    if isinstance(kind, list):
        return any(fits(value, each) for each in kind)
    if isinstance(value, bool):
        return kind == "boolean" or kind not in TYPES
    return isinstance(value, TYPES.get(kind, object))


def _named(kind: str | list[str]) -> str:
    return kind if isinstance(kind, str) else " or ".join(kind)


def how_to_call(tool: Tool) -> str:
    """How to call it, in one sentence for the model."""
    known = tool.parameters.get("properties") or {}
    if not known:
        return "It takes no arguments: send {}"
    required = tool.parameters.get("required") or ()
    each = []
    for name, about in known.items():
        kind = about.get("type", "any") if isinstance(about, dict) else "any"
        optional = "" if name in required else ", optional"
        each.append(f"{name} ({_named(kind)}{optional})")
    return f"It takes {', '.join(each)}"


# As it would be written by hand: a model reads letters better than escapes.
_as_text = json.JSONEncoder(
    ensure_ascii=False, separators=(",", ":"), default=str
).encode


def as_text(result: Any) -> str:
    """A tool's result as the model reads it: text as it is, the rest as JSON.

    >>> as_text(["access.log", "errors.log"])
    '["access.log","errors.log"]'
    """
    if isinstance(result, str):
        return result
    try:
        return _as_text(result)
    except (TypeError, ValueError, RecursionError):
        # The tool has run, and a write has had its effect: that is no error.
        return f"done; the result is a {type(result).__name__} that JSON cannot hold"
