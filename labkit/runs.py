"""Runs from the command line: stopped in one terminal, finished in another.

    python -m labkit run --scenario destructive --id n1
    python -m labkit approve n1            (or: reject n1 "why")
    python -m labkit trace n1

A run is two files in `runs/`: n1.json is its state, n1.jsonl its trace. The provider
is the one at --url or LLM_BASE_URL; without either, a scripted mock that lives as long
as the command. Tools work on a scratch copy of data/workspace.

Exit status: 0 completed; 1 failed, or the command could not do what was asked; 3
stopped, and can be resumed; 130 interrupted with Ctrl-C, and can be resumed.
"""

import argparse
import asyncio
import os
import sys
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path

from labkit.client import ChatClient
from labkit.decisions import approve, reject, resolve
from labkit.errors import ConfigError, LabkitError
from labkit.harness import RunLimits, new_run, run
from labkit.retry import Retry
from labkit.runreport import as_line, report
from labkit.server import start_server
from labkit.state import RunState, StateError
from labkit.store import RunStore
from labkit.subagent import subagent
from labkit.trace import Trace, records
from labkit.workspace import TASK, Workspace, opening

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
        except KeyboardInterrupt:
            print("\nstopped; what it has done is saved", file=sys.stderr)
            return INTERRUPTED
        except LabkitError as error:
            print(error, file=sys.stderr)
            return 1


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
    """`approve`, `reject` and `resolve`: write down the decision, and go on."""
    with store.lock(args.run_id):
        state = store.load(args.run_id)
        args.decide(args, state, args.call or waiting_for(state))
        store.save(state)
    return go_on(args, store, state)


def waiting_for(state: RunState) -> str:
    """The call that the run was interrupted for."""
    about = state.interruption or {}
    if "call_id" not in about:
        why = about.get("type", state.status)
        raise StateError(f"run {state.run_id} waits for no decision: it is {why}")
    return about["call_id"]


def show(args: argparse.Namespace, store: RunStore) -> int:
    """`trace`: what a run did, line by line."""
    path = trace_path(store, args.run_id)
    if not path.exists():
        store.load(args.run_id)  # says which runs there are
        raise StateError(f"run {args.run_id} has no trace at {path}")
    events, torn = records(path)
    for event in events:
        print(as_line(event, since_s=events[0]["t_s"]))
    for number in torn:
        print(f"line {number} is torn: a process died while it wrote it")
    return 0


def trace_path(store: RunStore, run_id: str) -> Path:
    return store.path(run_id).with_suffix(".jsonl")


def go_on(args: argparse.Namespace, store: RunStore, state: RunState) -> int:
    """Run until the run leaves the loop, then say how."""
    limits = RunLimits(**state.limits or {})
    if args.max_turns is not None:
        limits = replace(limits, max_turns=args.max_turns)
    if args.budget is not None:
        limits = replace(limits, max_budget_usd=args.budget)
    url = args.url or os.environ.get("LLM_BASE_URL")
    with ExitStack() as stack:
        ours = None if url else stack.enter_context(start_server("scripted"))
        workspace = stack.enter_context(Workspace())
        retry = Retry(idempotent=True) if ours else Retry()
        client = ChatClient(ours.url if ours else url, retry=retry)
        asyncio.run(work(state, workspace, client, store, limits))
    print(report(state))
    ends = {"completed": 0, "failed": 1}
    return ends.get(state.status, STOPPED)


async def work(
    state: RunState, workspace: Workspace, client: ChatClient, store: RunStore,
    limits: RunLimits,
) -> None:  # fmt: skip
    async with client:
        tools = workspace.tools()
        if state.model == "delegate":
            about = "Investigate one question and return a short summary."
            tools.append(subagent("research", about, tools, client, model="plan"))
        store.folder.mkdir(parents=True, exist_ok=True)
        trace = Trace(trace_path(store, state.run_id))
        await run(state, tools, client, limits=limits, store=store, trace=trace,
                  on_progress=lambda label: print(f"  {label}"))  # fmt: skip


def caps(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--max-turns", type=turns, help="the cap on turns (20)")
    parser.add_argument("--budget", metavar="USD", help="the cap on dollars (none)")
    parser.add_argument("--url", help="the provider's base URL (LLM_BASE_URL)")


def turns(text: str) -> int:
    try:
        return RunLimits(max_turns=int(text)).max_turns
    except (ConfigError, ValueError):
        raise argparse.ArgumentTypeError(f"{text!r} is no number of turns") from None


def start_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--scenario", default="plan", help="the model's name (plan)")
    parser.add_argument("--task", default=TASK, help="what the user asks")
    parser.add_argument("--id", metavar="RUN_ID", help="the run's name (made up)")
    caps(parser)


def run_id(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("run_id", metavar="RUN_ID")


def resume_options(parser: argparse.ArgumentParser) -> None:
    run_id(parser)
    caps(parser)


def decision_options(parser: argparse.ArgumentParser) -> None:
    resume_options(parser)
    waits = "which call (the one that it waits for)"
    parser.add_argument("--call", metavar="ID", help=waits)


def approve_options(parser: argparse.ArgumentParser) -> None:
    decision_options(parser)
    parser.set_defaults(decide=lambda args, state, call: approve(state, call))


def reject_options(parser: argparse.ArgumentParser) -> None:
    parser.set_defaults(decide=lambda args, state, call: reject(state, call, args.why))
    decision_options(parser)
    parser.add_argument("why", help="the reason, in words for the model")


def resolve_options(parser: argparse.ArgumentParser) -> None:
    def say(args, state, call):
        ran = args.ran is not None
        resolve(state, call, ran=ran, **({"result": args.ran} if ran else {}))

    parser.set_defaults(decide=say)
    decision_options(parser)
    either = parser.add_mutually_exclusive_group(required=True)
    either.add_argument("--ran", metavar="RESULT", help="it ran, and this came of it")
    either.add_argument("--not-run", action="store_true", help="it did not: run it")


START = Command(start_options, start)
RESUME = Command(resume_options, resume)
APPROVE = Command(approve_options, decide)
REJECT = Command(reject_options, decide)
RESOLVE = Command(resolve_options, decide)
TRACE = Command(run_id, show)
