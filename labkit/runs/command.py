"""Runs from the command line: stopped in one terminal, finished in another.

    python -m labkit run --scenario destructive --id n1
    python -m labkit approve n1            (or: reject n1 "why")
    python -m labkit trace n1
    python -m labkit settle n1 0.0012      (if nobody knows what a turn has cost)

A run is two files in `runs/`: n1.json is its state, n1.jsonl its trace. The provider
is the one at --url or LLM_BASE_URL; without either, a scripted mock that lives as long
as the command. Tools work on a scratch copy of data/workspace.

Exit status: 0 completed; 1 failed, or the command could not do what was asked; 3
stopped, and can be resumed; 130 interrupted with Ctrl-C, and can be resumed. It does
not depend on who reads the output: `run | head -1` runs to its end.
"""

import argparse
import asyncio
import os
import sys
from collections.abc import Callable
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path

from labkit.client import ChatClient
from labkit.decisions import approve, reject, resolve, settle
from labkit.errors import LabkitError
from labkit.harness import RunLimits, new_run, run
from labkit.retry import Retry
from labkit.runs.options import (
    caps_of,
    decision_options,
    options_of,
    resume_options,
    run_id,
    start_options,
    url_of,
)
from labkit.runs.report import as_line, indented, next_steps, printable, report
from labkit.server import start_server
from labkit.state import RunState, StateError
from labkit.store import RunStore
from labkit.subagent import subagent
from labkit.trace import Trace, records
from labkit.workspace import Workspace, opening

STOPPED, INTERRUPTED = 3, 130


@dataclass(frozen=True)
class Command:
    """One word of `python -m labkit`: its options, and what it does."""

    options: Callable[[argparse.ArgumentParser], None]
    work: Callable[[argparse.Namespace, RunStore], int]

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        self.options(parser)
        parser.add_argument("--runs", default="runs", help="the folder of the runs")

    def main(self, args: argparse.Namespace) -> int:
        try:
            return self.work(args, RunStore(args.runs))
        except (LabkitError, OSError) as error:
            print(indented(error), file=sys.stderr)
            return 1


def say(text: str) -> None:
    """Print it, unless nobody reads any more: what a run does is not up to them."""
    try:
        print(text, flush=True)
    except BrokenPipeError:
        with suppress(OSError):  # what comes after it goes nowhere, in silence
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def start(args: argparse.Namespace, store: RunStore) -> int:
    """`run`: begin a new one."""
    state = new_run(args.scenario, opening(args.task), run_id=args.id)
    if store.path(state.run_id).exists():
        raise StateError(
            f"there is a run {state.run_id} in {store.folder}: resume it, or give"
            " this one another --id"
        )
    return go_on(args, store, state)


def resume(args: argparse.Namespace, store: RunStore) -> int:
    """`resume`: go on, with other caps if there are any on the command line."""
    return go_on(args, store, store.load(args.run_id))


def decide(args: argparse.Namespace, store: RunStore) -> int:
    """`approve`, `reject`, `resolve` and `settle`: write it down, and go on."""
    with store.lock(args.run_id):
        state = store.load(args.run_id)
        caps_of(args, state)  # what is wrong with these is said
        url_of(args)  # before anything is written down
        args.decide(args, state)
        store.save(state)
    return go_on(args, store, state)


def call_of(args: argparse.Namespace, state: RunState) -> str:
    """The call that is meant, or else the one that the run was interrupted for."""
    about = state.interruption or {}
    if args.call:
        return args.call
    if "call_id" not in about:
        # An interruption has a name of its own; a cap's is that of the status.
        why = about.get("type") if state.status == "interrupted" else state.status
        said = f"run {state.run_id} waits for no decision: it is {why}"
        ways = "; or ".join(next_steps(state, options_of(args)))
        raise StateError(f"{said}; to go on: {ways}" if ways else said)
    return about["call_id"]


def show(args: argparse.Namespace, store: RunStore) -> int:
    """`trace`: what a run did, line by line."""
    path = trace_path(store, args.run_id)
    if not path.exists():
        store.load(args.run_id)  # says which runs there are
        raise StateError(f"run {args.run_id} has no trace at {path}")
    events, torn = records(path)
    since_s = next((e["t_s"] for e in events if "t_s" in e), 0)
    lines = [as_line(event, since_s) for event in events]
    lines += [f"line {n} is torn: a process died while it wrote it" for n in torn]
    say("\n".join(lines))
    return 0


def trace_path(store: RunStore, run_id: str) -> Path:
    return store.path(run_id).with_suffix(".jsonl")


def go_on(args: argparse.Namespace, store: RunStore, state: RunState) -> int:
    """Run until the run leaves the loop, then say how."""
    limits, url = caps_of(args, state), url_of(args)
    pressed = False
    with ExitStack() as stack:
        ours = None if url else stack.enter_context(start_server("scripted"))
        workspace = stack.enter_context(Workspace())
        retry = Retry(idempotent=True) if ours else Retry()
        client = ChatClient(ours.url if ours else url, retry=retry)
        try:
            asyncio.run(work(state, workspace, client, store, limits))
        except KeyboardInterrupt:
            pressed = True
    if pressed and not state.revision:
        raise KeyboardInterrupt  # before there was anything to go on with
    say(report(state, options_of(args)))
    ends = {"completed": 0, "failed": 1}
    return INTERRUPTED if pressed else ends.get(state.status, STOPPED)


async def work(
    state: RunState, workspace: Workspace, client: ChatClient, store: RunStore,
    limits: RunLimits,
) -> None:  # fmt: skip
    async with client:
        tools = workspace.tools()
        if state.model == "delegate":
            about = "Investigate one question and return a short summary."
            tools.append(subagent("research", about, tools, client, model="plan"))
        trace = Trace(trace_path(store, state.run_id))
        await run(state, tools, client, limits=limits, store=store, trace=trace,
                  on_progress=lambda label: say(f"  {printable(label)}"))  # fmt: skip


def approve_options(parser: argparse.ArgumentParser) -> None:
    decision_options(parser)
    parser.set_defaults(decide=lambda args, state: approve(state, call_of(args, state)))


def reject_options(parser: argparse.ArgumentParser) -> None:
    def say_no(args, state):
        reject(state, call_of(args, state), args.why)

    parser.set_defaults(decide=say_no)
    decision_options(parser)
    parser.add_argument("why", help="the reason, in words for the model")


def resolve_options(parser: argparse.ArgumentParser) -> None:
    def clear_up(args, state):
        told = {} if args.ran is None else {"result": args.ran}
        resolve(state, call_of(args, state), ran=args.ran is not None, **told)

    parser.set_defaults(decide=clear_up)
    decision_options(parser)
    either = parser.add_mutually_exclusive_group(required=True)
    either.add_argument("--ran", metavar="RESULT", help="it ran, and this came of it")
    either.add_argument("--not-run", action="store_true", help="it did not: run it")


def settle_options(parser: argparse.ArgumentParser) -> None:
    parser.set_defaults(decide=lambda args, state: settle(state, args.usd))
    resume_options(parser)
    said = "what the turns that nobody knows the cost of have cost in all"
    parser.add_argument("usd", metavar="USD", help=said)


START = Command(start_options, start)
RESUME = Command(resume_options, resume)
APPROVE = Command(approve_options, decide)
REJECT = Command(reject_options, decide)
RESOLVE = Command(resolve_options, decide)
SETTLE = Command(settle_options, decide)
TRACE = Command(run_id, show)
