"""The bench's figures: for the tables where a picture says more than the numbers.

    write({"14.jitter": compute(table, seeds=40)}, Path("out"))

Each function takes one result of `labkit.tables.compute` (its rows, and what the
chapter printed). Where a table keeps counts and the picture needs the moments, the
same experiment is asked for them once more, on the virtual clock.
"""

from collections.abc import Callable
from pathlib import Path

import pandas as pd
from matplotlib.figure import Figure

from labkit.experiments import lanes, lives, odds, silence, streaming, turn_by_turn
from labkit.experiments.herd import herd
from labkit.plots import (
    errors,
    loop,
    notes,
    retries,
    seconds,
    spending,
    survival,
    waiting,
)
from labkit.plots import herd as herds
from labkit.plots import streaming as streams
from labkit.plots.style import save

SUFFIXES = (".png", ".svg")
TIDE = "virtual clock; 13 tokens, 60 ms before each"


def write(results: dict[str, dict], folder: Path) -> list[Path]:
    """A PNG and an SVG for each result that has a figure; returns their paths."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for table_id, draw in FIGURES.items():
        if table_id in results:
            fig = draw(results[table_id])
            for suffix in SUFFIXES:
                paths.append(folder / f"{table_id}{suffix}")
                save(fig, paths[-1])
    return paths


def rows_of(result: dict) -> pd.DataFrame:
    """Our rows, as the experiment returned them."""
    return pd.DataFrame(result["rows"])


def ttft(result: dict) -> Figure:
    return streams.ttft_bars(rows_of(result), TIDE)


def endings(result: dict) -> Figure:
    arrived = {
        ending: streaming.arrivals(fault=fault)
        for ending, fault in streaming.ENDINGS.items()
    }
    return streams.lanes(arrived, "Three endings, one text", TIDE)


def reader(result: dict) -> Figure:
    return streams.reader_bars(rows_of(result), "no clock; random cuts, seeded")


def herd20(result: dict) -> Figure:
    """The herd of the table's "one run"."""
    rows, title = herd(20), "Twenty clients over a Retry-After of 1 s"
    until_s = rows.answered_s.max() * 1.05
    return herds.one(rows, title, until_s=until_s, note=notes.twenty())


def jitter(result: dict) -> Figure:
    rows = rows_of(result)
    runs = notes.seeds(rows[rows.policy == rows.policy[0]].seed.nunique())
    chapter_s = chapter_walls(result["published"])
    return retries.walls(rows, chapter_s, note=notes.hundred(runs))


def chapter_walls(printed_rows: list[dict]) -> dict[str, list[float]]:
    """The three runs that the chapter printed for each policy, in seconds."""
    walls_s: dict[str, list[float]] = {}
    for row in printed_rows:
        if row["summary"].startswith("chapter, run"):
            walls_s.setdefault(row["policy"], []).append(row["wall_s"])
    return walls_s


def gate_width(result: dict) -> Figure:
    rows = rows_of(result)
    note = notes.twenty(f"medians of {notes.seeds(rows.runs[0])}")
    return retries.gate_width(rows, note=note)


def retry_after(result: dict) -> Figure:
    rows = rows_of(result)
    return retries.retry_after(rows, note=notes.twenty(f"seed {rows.seed[0]}"))


def retry_after_herd(result: dict) -> Figure:
    rows = rows_of(result)
    what = f"medians of {notes.seeds(rows.runs[0])}"
    asked = "1 s (capacity) or the truth (window)"
    note = notes.hundred(what, retry_after=asked)
    return retries.retry_after_herd(rows, note=note)


def deadline(result: dict) -> Figure:
    return waiting.deadline(rows_of(result))


def idempotency(result: dict) -> Figure:
    note = f"{TIDE}: 780 ms; the client gives up after 300 ms"
    return waiting.idempotency(lanes.idempotency_lanes(), note=note)


def abandon(result: dict) -> Figure:
    return waiting.abandon(rows_of(result), note=TIDE)


def scripted(model: str) -> str:
    """Under a picture of the loop's bill."""
    return f"virtual clock; scripted model {model}; {loop.RATES}"


def plan(result: dict) -> Figure:
    rows = rows_of(result)
    turns = rows[rows["row"] != "run"].reset_index()
    turns["turn"] = turns["row"].str.removeprefix("turn ")
    return loop.prompts(turns, note=scripted("plan"))


def turn_cap(result: dict) -> Figure:
    rows = rows_of(result)
    turns = turn_by_turn.turns("runaway", int(rows.cap.max()))
    return loop.turn_cap(turns, rows, note=scripted("runaway"))


def budget(result: dict) -> Figure:
    rows = rows_of(result)
    turns = turn_by_turn.turns("runaway", int(rows.turns.max()))
    return spending.budget(rows, turns, scripted("runaway") + "; no cap on turns")


def caching(result: dict) -> Figure:
    note = scripted("runaway") + ", cached input at a tenth"
    return loop.caching(rows_of(result), note=note)


def catalogue(result: dict) -> Figure:
    return loop.catalogue(rows_of(result), note=scripted("runaway"))


def tool_errors(result: dict) -> Figure:
    return errors.wordings(rows_of(result), note=scripted("recover"))


def permanent_error(result: dict) -> Figure:
    return errors.permanent(rows_of(result), note=scripted("forbidden"))


def dedupe(result: dict) -> Figure:
    return errors.repeats(rows_of(result), scripted("once, then repeat"))


def resume(result: dict) -> Figure:
    return survival.lives(lives.resumed(), notes.killed("plan"))


def parallel(result: dict) -> Figure:
    return survival.lives(lives.parallel(), notes.killed("pair"))


def cancel(result: dict) -> Figure:
    return survival.stop(rows_of(result), stop_ms=1200, note=notes.SCAN)


def latency(result: dict) -> Figure:
    return seconds.latency(silence.at_work(), note=notes.THREE_TURNS)


def trace(result: dict) -> Figure:
    return seconds.trace(rows_of(result), note=notes.TRACE)


def flaky(result: dict) -> Figure:
    return seconds.flaky(odds.odds(), rows_of(result), note=notes.FLAKY)


def subagent(result: dict) -> Figure:
    return seconds.subagent(rows_of(result), note=notes.PRICED)


def stop_lag(result: dict) -> Figure:
    """With --real, all three kinds of tool; else the one that needs no thread."""
    if result.get("real_rows"):
        rows = pd.DataFrame(result["real_rows"])
        note = notes.scan_real(rows.stop_at_ms[0] / 1000)
        return seconds.stop_lag(rows, note=note)
    note = f"{notes.SCAN}; blocking tools take real time: see --real"
    return seconds.stop_lag(rows_of(result), note=note)


FIGURES: dict[str, Callable[[dict], Figure]] = {
    "14.ttft": ttft,
    "14.reader": reader,
    "14.endings": endings,
    "14.herd20": herd20,
    "14.jitter": jitter,
    "14.gate_width": gate_width,
    "14.retry_after": retry_after,
    "14.retry_after_herd": retry_after_herd,
    "14.deadline": deadline,
    "14.idempotency": idempotency,
    "14.abandon": abandon,
    "23.plan": plan,
    "23.turn_cap": turn_cap,
    "23.budget": budget,
    "23.caching": caching,
    "23.catalogue": catalogue,
    "23.tool_errors": tool_errors,
    "23.permanent_error": permanent_error,
    "23.dedupe": dedupe,
    "23.resume": resume,
    "23.parallel": parallel,
    "23.cancel": cancel,
    "23.stop_lag": stop_lag,
    "23.trace": trace,
    "23.latency": latency,
    "23.flaky": flaky,
    "23.subagent": subagent,
}
