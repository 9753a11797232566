"""`python -m labkit COMMAND`.

A command is a module with `add_arguments(parser)` and `main(args) -> int` (the exit
status), and a line in COMMANDS; or an object with these two, in a module of several
("module:OBJECT"). Only the command that was asked for is imported, so `doctor` answers
at once, and where pandas is missing.
"""

import argparse
import importlib
import sys
from collections.abc import Sequence

# name -> (module of labkit, or module:OBJECT; one line of help)
COMMANDS = {
    "doctor": ("doctor", "what is missing on this machine, and what mends it"),
    "notebooks": ("notebooks", "run every notebook and refresh its outputs"),
    "tables": ("tables", "the chapters' tables, computed, beside those printed"),
    "bench": ("bench.command", "how fast the package is, measured here and now"),
    "run": ("runs.command:START", "begin a run, until it is done or stops"),
    "resume": ("runs.command:RESUME", "go on with a run, with higher caps or the same"),
    "approve": ("runs.command:APPROVE", "allow the call that a run waits for"),
    "reject": ("runs.command:REJECT", "refuse it, with a reason for the model"),
    "resolve": ("runs.command:RESOLVE", "say what became of a call in doubt"),
    "settle": ("runs.command:SETTLE", "say what turns of unknown cost have cost"),
    "trace": ("runs.command:TRACE", "what a run did, line by line"),
    "guesses": ("classroom.guessboard", "a class's guesses, merged into one picture"),
    "class": ("classroom.command", "student copies, class copies, grading"),
    "bundle": ("bundle.command", "wheels and project for machines without a network"),
    "readme": ("readme", "the README's figures, made anew from the results"),
}


def find(place: str):
    """What stands at a place of COMMANDS, imported."""
    module_name, _, name = place.partition(":")
    module = importlib.import_module(f"labkit.{module_name}")
    return getattr(module, name) if name else module


def usage() -> argparse.ArgumentParser:
    """The parser of the first word: it knows the commands by name only."""
    lines = [f"  {name:<10} {said}" for name, (_, said) in COMMANDS.items()]
    parser = argparse.ArgumentParser(
        prog="python -m labkit",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog="\n".join(["commands:", *lines]),
    )
    parser.add_argument("command", choices=COMMANDS, metavar="COMMAND")
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command. Returns its exit status; bad usage exits 2, as argparse does,
    and Ctrl-C 130, as shells do, also while a command is still being imported."""
    try:
        return perform(argv)
    except KeyboardInterrupt:
        print("\nstopped", file=sys.stderr)
        return 130


def perform(argv: Sequence[str] | None) -> int:
    argv = sys.argv[1:] if argv is None else list(argv)
    if not argv:  # what there is says more than that a word is missing
        usage().print_help(sys.stderr)
        return 2
    chosen = usage().parse_args(argv[:1]).command
    place, said = COMMANDS[chosen]
    try:
        command = find(place)
    except ModuleNotFoundError as error:
        from labkit.doctor import SET_UP

        print(f"{error.name} is not installed here; {SET_UP}", file=sys.stderr)
        return 1
    parser = argparse.ArgumentParser(
        prog=f"python -m labkit {chosen}", description=said
    )
    command.add_arguments(parser)
    return command.main(parser.parse_args(argv[1:]))


if __name__ == "__main__":
    sys.exit(main())
