"""The options that the commands about runs share, and what is read from them."""

import argparse
import os
import shlex
from dataclasses import replace

from labkit.conditions import RunLimits
from labkit.errors import ConfigError
from labkit.request import endpoint
from labkit.state import RunState
from labkit.workspace import TASK


def caps(parser: argparse.ArgumentParser, *usual: str) -> None:
    """usual: what holds where nothing is said, for turns and for dollars."""
    turns_usual, usd_usual = usual or ("as before", "as before")
    said = f"the cap on turns ({turns_usual})"
    parser.add_argument("--max-turns", type=turns, help=said)
    said = f"the cap on dollars ({usd_usual})"
    parser.add_argument("--budget", metavar="USD", help=said)
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
    caps(parser, str(RunLimits().max_turns), "none")


def run_id(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("run_id", metavar="RUN_ID")


def resume_options(parser: argparse.ArgumentParser) -> None:
    run_id(parser)
    caps(parser)


def decision_options(parser: argparse.ArgumentParser) -> None:
    resume_options(parser)
    waits = "which call (the one that it waits for)"
    parser.add_argument("--call", metavar="ID", help=waits)


def caps_of(args: argparse.Namespace, state: RunState) -> RunLimits:
    """The caps on the command line, and else those that the run has."""
    limits = RunLimits(**state.limits or {})
    if args.max_turns is not None:
        limits = replace(limits, max_turns=args.max_turns)
    if args.budget is not None:
        limits = replace(limits, max_budget_usd=args.budget)
    return limits


def url_of(args: argparse.Namespace) -> str | None:
    """The provider that was named, if one was."""
    url = args.url or os.environ.get("LLM_BASE_URL")
    if url:
        endpoint(url)  # ConfigError for what is no address
    return url


def options_of(args: argparse.Namespace) -> str:
    """What the next command about this run has to be given as well."""
    given = {"--runs": args.runs != "runs" and args.runs, "--url": args.url}
    return "".join(f" {name} {shlex.quote(v)}" for name, v in given.items() if v)
