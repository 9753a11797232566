"""`python -m labkit bench`: all figures, here and now.

Times depend on the machine, so they are no part of the tests. The README quotes them
in a block that `--write` makes anew.
"""

import argparse
import gc
import os
import platform

from labkit.bench import agents, clients
from labkit.bench.figure import Figure
from labkit.readme import write_block


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--seeds", type=int, default=200, help="of the jitter table")
    parser.add_argument("--write", action="store_true", help="into the README's block")


def main(args: argparse.Namespace) -> int:
    measures = [*clients.MEASURES, *agents.MEASURES]
    measures.append(lambda: [clients.many_seeds(args.seeds)])
    figures: list[Figure] = []
    for measure in measures:
        gc.collect()
        gc.freeze()  # the garbage of the measures before is not this one's to count
        for figure in measure():
            print(figure, flush=True)
            figures.append(figure)
    if args.write:
        write_block("bench", as_markdown(figures))
    return 0


def machine() -> str:
    return (
        f"Python {platform.python_version()} on {platform.system()} "
        f"{platform.machine()}, {os.cpu_count()} cores"
    )


def as_markdown(figures: list[Figure]) -> str:
    """A table, and the machine it was measured on."""
    rows = [f"| {f.what} | {f.value} | {f.goal} |" for f in figures]
    head = ["| measured | value | |", "|---|---|---|"]
    return "\n".join([*head, *rows, "", f"Measured with `make bench` on {machine()}."])
