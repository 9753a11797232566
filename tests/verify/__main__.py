"""`make verify`: try to break it for some minutes, and write down what came of it.

    python -m tests.verify                      all of it, into docs/verification.md
    python -m tests.verify --quick              a second or two each, printed only
    python -m tests.verify --only kills --seed 7

A failure is in the report with its seed and case, and makes the exit code 1.
"""

import argparse
import datetime
import importlib
import os
import platform
import sys
import time
from pathlib import Path

import tests.conftest  # noqa: F401  (no key, no proxy, no way out of this machine)
from tests.verify.report import Outcome, as_markdown
from tests.verify.section import Section, Tally, told

REPORT = Path(__file__).resolve().parents[2] / "docs" / "verification.md"

# module of tests/verify -> seconds that it may take: in all less than ten minutes
SECTIONS = {
    "decoders": 200,  # as a rule it is done sooner, with 100,000 streams
    "reader": 30,
    "assembler": 35,
    "statefiles": 40,
    "toolcalls": 40,
    "tracelines": 20,
    "door": 50,
    "kills": 40,
    "faults": 50,
    "load": 25,
}
QUICK_S = 1.5


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tests.verify", description=__doc__.partition("\n")[0]
    )
    parser.add_argument("--quick", action="store_true", help="a second or two each")
    parser.add_argument("--only", action="append", choices=SECTIONS, help="some of it")
    parser.add_argument("--seed", type=int, help="of a run to repeat (today's date)")
    args = parser.parse_args(arguments)
    today = datetime.date.today()
    seed = int(f"{today:%Y%m%d}") if args.seed is None else args.seed
    print(f"seed {seed}", flush=True)

    outcomes = []
    for name in args.only or SECTIONS:
        budget_s = QUICK_S if args.quick else SECTIONS[name]
        outcomes.append(try_section(name, budget_s, seed))
        print(outcomes[-1].in_a_line(), flush=True)
    about = (
        f"{today}, seed {seed}, Python {platform.python_version()} on"
        f" {platform.system()} {platform.machine()}, {os.cpu_count()} cores"
    )
    report = as_markdown(outcomes, about)
    if args.quick or args.only:
        print(f"\n{report}")
    else:
        REPORT.write_text(report, encoding="utf-8")
    return 1 if any(outcome.section.failures for outcome in outcomes) else 0


def try_section(name: str, budget_s: float, seed: int) -> Outcome:
    """Run one section. Its own fall is a failure in the report, not the end of it."""
    module = importlib.import_module(f"tests.verify.{name}")
    began_s = time.monotonic()
    try:
        section = module.run(budget_s, seed)
    except Exception as error:
        fallen = Tally("the section itself", tried=1)
        fallen.failures.append(f"seed {seed}: {told(error)}")
        section = Section(module.NAME, [fallen])
    return Outcome(section, time.monotonic() - began_s)


if __name__ == "__main__":
    sys.exit(main())
