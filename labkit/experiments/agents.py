"""What the measurements of chapter 23 share: one run of one scenario, and its row."""

import json
from dataclasses import dataclass

from labkit.experiments.stage import Stage
from labkit.harness import RunLimits, RunState, new_run, run
from labkit.retry import Retry
from labkit.toolcalls import ToolCall
from labkit.trace import MemoryTrace
from labkit.workspace import SYSTEM, TASK, Workspace

NO_CAP = RunLimits(max_turns=None)


@dataclass
class Ended:
    """A run that has left the loop, with all that it touched."""

    state: RunState
    workspace: Workspace
    trace: MemoryTrace


def begin(scenario: str, run_id: str | None = None) -> RunState:
    """A new run of a scenario, with the house's prompts. Two runs at one provider
    must not have one id: they would share the answers to their turns."""
    return new_run(scenario, TASK, SYSTEM, run_id)


async def play(stage: Stage, scenario: str, **options) -> Ended:
    """Run a scenario to where it stops, in a workspace of its own.

    options: those of `labkit.harness.run`; also `state` to go on with, `workspace`,
    `tools` in place of the workspace's, and `retry`, the client's policy.
    """
    retry = options.pop("retry", Retry())
    state = options.pop("state", None) or begin(scenario)
    trace = options.pop("trace", None) or MemoryTrace()
    workspace = options.pop("workspace", None) or Workspace()
    tools = options.pop("tools", None) or workspace.tools()
    async with stage.client(retry=retry) as client:
        await run(state, tools, client, trace=trace, **options)
    return Ended(state, workspace, trace)


def columns(ended: Ended) -> dict:
    """The columns that every row of a run has."""
    state = ended.state
    return {
        "turns": state.turns,
        "tool_runs": state.tool_runs,
        "prompt_tokens": state.prompt_tokens,
        "completion_tokens": state.completion_tokens,
        "cost_usd": float(state.cost),
        "status": state.status,
        "answer": state.output or "",
    }


def deleted(ended: Ended) -> str:
    """The deletions that ran, as JSON."""
    return json.dumps(ended.workspace.deleted, separators=(",", ":"))


def spelled(call: ToolCall) -> str:
    """A call as people write it: `delete_file({"path":"access.log"})`."""
    return f"{call.name}({call.arguments})"
