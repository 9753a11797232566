"""The report: one table, then the notes of the sections."""

from dataclasses import dataclass
from importlib.metadata import version

from tests.verify.section import SHOWN, Section

JUDGES = ("httpx-sse", "openai", "hypothesis", "h11", "httpx")


@dataclass
class Outcome:
    """A section that has been run."""

    section: Section
    took_s: float

    def in_a_line(self) -> str:
        section, took = self.section, f"{self.took_s:.0f} s"
        tried = sum(tally.tried for tally in section.tallies)
        failed = f"{len(section.failures)} failed"
        return f"{section.name}: {tried:,} tried, {failed}, {took}"


def as_markdown(outcomes: list[Outcome], about: str) -> str:
    """about: when, with which seed, and where."""
    failures = [each for outcome in outcomes for each in outcome.section.failures]
    tallies = [tally for outcome in outcomes for tally in outcome.section.tallies]
    tried = sum(tally.tried for tally in tallies)
    took_s = sum(outcome.took_s for outcome in outcomes)
    counted = [tally.leaks for tally in tallies if tally.leaks is not None]
    verdict = f"{len(failures):,} failures" if failures else "no failure"
    judges = ", ".join(f"{name} {version(name)}" for name in JUDGES)
    parts = [
        "# Verification",
        "What `make verify` tried in order to break this project, and what came of it."
        " To repeat it: `python -m tests.verify --seed N`.",
        f"Last run: {about}, {took_s:.0f} s.",
        f"**{tried:,} cases, {verdict}; leaks counted {len(counted)} times:"
        f" {sum(counted) or 'none'}.**",
        *failed(outcomes),
        table(outcomes),
        "A case survives if what had to come came: the right result, or a typed error"
        " that says what is wrong. Leaks are tasks, descriptors, slots, connections or"
        " processes that were left over; `-`: there is nothing to leak.",
        *(part for outcome in outcomes for part in notes(outcome.section)),
        f"Judges and tools: {judges}.",
    ]
    return "\n\n".join(parts) + "\n"


def table(outcomes: list[Outcome]) -> str:
    lines = [
        "| section | what was tried | tried | survived | leaks | seconds |",
        "|---|---|---:|---:|---:|---:|",
    ]
    for outcome in outcomes:
        name, took = outcome.section.name, f"{outcome.took_s:.0f}"
        for tally in outcome.section.tallies:
            leaks = "-" if tally.leaks is None else tally.leaks or "none"
            lines.append(
                f"| {name} | {tally.what} | {tally.tried:,} | {tally.survived:,} |"
                f" {leaks} | {took} |"
            )
            name = took = ""
    return "\n".join(lines)


def failed(outcomes: list[Outcome]) -> list[str]:
    """The failures, each with what repeats it; not all of them where they are many."""
    parts = []
    for outcome in outcomes:
        found = outcome.section.failures
        parts += [f"    {' '.join(each.split())[:600]}" for each in found[:SHOWN]]
        if len(found) > SHOWN:
            parts.append(f"    ... and {len(found) - SHOWN:,} more")
    return ["## Failures", "\n".join(parts)] if parts else []


def notes(section: Section) -> list[str]:
    return [f"## {section.name}", *section.notes] if section.notes else []
