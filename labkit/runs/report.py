"""A run and its trace in words, for the terminal.

What a model or a tool has said is shown, but never obeyed: no escape sequence reaches
the terminal, and no text can look like a line of ours.
"""

import json
from decimal import Decimal
from typing import Any

from labkit.conditions import unpriced_turns
from labkit.state import RunState

PYTHON = "python -m labkit"


def report(state: RunState, options: str = "") -> str:
    """How a run stands, and what to do next. options: see `next_steps`."""
    lines = [
        f"run {state.run_id}: {outcome(state)}",
        f"turns={state.turns}  tools={state.tool_runs}  in={state.prompt_tokens:,}"
        f"  out={state.completion_tokens:,}  cost=${state.cost:f}",
    ]
    if turns := unpriced_turns(state):
        lines.append(
            f"{turns} turn(s) are not in the cost: nobody knows what they cost"
        )
    return "\n".join([*lines, *(f"next: {way}" for way in next_steps(state, options))])


def outcome(state: RunState) -> str:
    """The status and what belongs to it; further lines of an answer are indented.

    >>> outcome(RunState("n1", "plan", [], status="completed", output="Done."))
    'completed: Done.'
    """
    if state.status == "completed":
        return f"completed: {indented(state.output)}"
    if state.status == "failed":
        return f"failed: {indented(state.error)}"
    about = state.interruption or {}
    if state.status != "interrupted":
        return state.status
    what = about["type"]
    if {"tool_name", "args"} <= about.keys():
        call = f"{about['tool_name']}({compact(about['args'])})"
        return f"interrupted / {what} -> {printable(call)}"
    detail = about.get("reason") or about.get("name")
    return f"interrupted / {what}" + (f": {printable(detail)}" if detail else "")


def next_steps(state: RunState, options: str = "") -> list[str]:
    """The commands that can go on from here.

    options: what each of them needs besides, such as " --runs folder".
    """
    if not state.resumable:
        return []
    ways = [f"resume {state.run_id}"]
    kind = (state.interruption or {}).get("type")
    if state.status == "max_turns_exceeded":
        ways = [f"resume {state.run_id} --max-turns {2 * max(state.turns, 1)}"]
    elif state.status == "budget_exceeded":
        enough = max(2 * state.cost, Decimal("0.01"))
        ways = [f"resume {state.run_id} --budget {enough:.3f}"]
    elif kind == "approval":
        ways = [f"approve {state.run_id}", f'reject {state.run_id} "why"']
    elif kind == "in_doubt":
        resolve = f"resolve {state.run_id}"
        ways = [f'{resolve} --ran "its result"', f"{resolve} --not-run"]
    elif kind == "unpriced":  # else it is the price that is missing: no command has it
        ways = [f"settle {state.run_id} USD"] if unpriced_turns(state) else []
    return [f"{PYTHON} {way}{options}" for way in ways]


def as_line(event: dict[str, Any], since_s: float) -> str:
    """One event of a trace; the time in seconds since the first one."""
    known = {"run_id", "t_s", "type"}
    rest = (
        f"{name}={value if isinstance(value, str) else compact(value)}"
        for name, value in event.items()
        if name not in known and value is not None
    )
    at = event.get("t_s")
    at = f"{at - since_s:9.3f}" if isinstance(at, float | int) else f"{'?':>9}"
    who, kind = event.get("run_id", "?"), event.get("type", "?")
    return printable(f"{at}  {who}  {kind!s:<17} {'  '.join(rest)}")


def printable(text: str) -> str:
    r"""One line without anything that a terminal would act on, or hide.

    >>> print(printable("\x1b[2Jall is well\n"))
    \x1b[2Jall is well\n
    """
    return "".join(
        each if each.isprintable() else each.encode("unicode_escape").decode()
        for each in str(text)
    )


def indented(text: object) -> str:
    """The same for a text of several lines."""
    return "\n  ".join(map(printable, str(text).splitlines()))


def compact(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
