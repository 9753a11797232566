"""A run and its trace in words, for the terminal."""

import json
from typing import Any

from labkit.state import RunState

PYTHON = "python -m labkit"


def report(state: RunState) -> str:
    """How a run stands, and what to do next."""
    lines = [
        f"run {state.run_id}: {outcome(state)}",
        f"turns={state.turns}  tools={state.tool_runs}  in={state.prompt_tokens:,}"
        f"  out={state.completion_tokens:,}  cost=${state.cost:f}",
    ]
    if state.unpriced_turns:
        lines.append(f"{state.unpriced_turns} turn(s) are not in the cost: not priced")
    return "\n".join([*lines, *(f"next: {each}" for each in next_steps(state))])


def outcome(state: RunState) -> str:
    """The status and what belongs to it, in one line.

    >>> outcome(RunState("n1", "plan", [], status="completed", output="Done."))
    'completed: Done.'
    """
    if state.status == "completed":
        return f"completed: {state.output}"
    if state.status == "failed":
        return f"failed: {state.error}"
    about = state.interruption or {}
    if state.status != "interrupted":
        return state.status
    what = about["type"]
    if "call_id" in about:
        return f"interrupted / {what} -> {about['tool_name']}({compact(about['args'])})"
    detail = about.get("reason") or about.get("name")
    return f"interrupted / {what}" + (f": {detail}" if detail else "")


def next_steps(state: RunState) -> list[str]:
    """The commands that can go on from here."""
    id, about = state.run_id, state.interruption or {}
    if not state.resumable:
        return []
    if state.status == "max_turns_exceeded":
        return [f"{PYTHON} resume {id} --max-turns {2 * max(state.turns, 1)}"]
    if state.status == "budget_exceeded":
        return [f"{PYTHON} resume {id} --budget {2 * state.cost:.3f}"]
    if about.get("type") == "approval":
        return [f"{PYTHON} approve {id}", f'{PYTHON} reject {id} "why"']
    if about.get("type") == "in_doubt":
        resolve = f"{PYTHON} resolve {id}"
        return [f'{resolve} --ran "its result"', f"{resolve} --not-run"]
    return [f"{PYTHON} resume {id}"]


def as_line(event: dict[str, Any], since_s: float) -> str:
    """One event of a trace; the time in seconds since the first one."""
    known = {"run_id", "t_s", "type"}
    rest = (
        f"{name}={value if isinstance(value, str) else compact(value)}"
        for name, value in event.items()
        if name not in known and value is not None
    )
    at = f"{event['t_s'] - since_s:9.3f}"
    return f"{at}  {event['run_id']}  {event['type']:<17} {'  '.join(rest)}"


def compact(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
