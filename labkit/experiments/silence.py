"""Chapter 23, latency: who is at work in each moment of a run, and what a person sees.

Both come from the trace: each of its lines has a time.
"""

import pandas as pd

from labkit.experiments.agents import Ended, play
from labkit.experiments.seconds import LATENCIES_MS
from labkit.experiments.stage import Stage, perform
from mock.provider import Settings

# What a user interface shows of the same run: kinds of moments, less to more.
VIEWS = {
    "the answer, when it is whole": {"run_stopped"},
    "its words, as they come": {"text"},
    "and each step": {"text", "tool_start", "tool_result"},
    "and the tool's progress": {"text", "tool_start", "tool_result", "tool_progress"},
}


def at_work(
    latencies_ms: tuple[int, ...] = LATENCIES_MS, clock: str = "virtual"
) -> pd.DataFrame:
    """The run of three turns, by the provider's time to the first token: who was
    being waited for, from when to when.

    The scenes of `seconds.latency`. Columns: latency_ms, who ("model" or "tool"),
    what, start_ms, end_ms.
    """
    rows = []
    for each in latencies_ms:
        settings = Settings(capacity=None, delay_ms=0, first_ms=each)
        _, moments = perform(clock, watched, settings, kind="scripted", name="plan")
        rows += [{"latency_ms": each} | part for part in parts(moments)]
    return pd.DataFrame(rows)


async def watched(stage: Stage, name: str) -> tuple[Ended, list[dict]]:
    """One run of a scenario, and its moments: the trace's, and the answer's words."""
    began_s, words = stage.time(), []

    def read(text: str) -> None:
        words.append({"type": "text", "t_ms": now_ms()})

    def now_ms() -> float:
        return round(1000 * (stage.time() - began_s), 3)

    ended = await play(stage, name, on_text=read)
    events, end_ms = ended.trace.events, now_ms()
    last_s = events[-1]["t_s"]  # the trace has the date; from the end to the start
    for event in events:
        event["t_ms"] = round(end_ms - 1000 * (last_s - event["t_s"]), 3)
    return ended, sorted([*events, *words], key=lambda moment: moment["t_ms"])


def parts(moments: list[dict]) -> list[dict]:
    """A run cut at its trace: each part ends with a turn or with a tool's result."""
    rows, start_ms = [], 0.0
    for moment in moments:
        if moment["type"] in ("turn", "tool_result"):
            turn = moment["type"] == "turn"
            what = f"turn {moment['turn']}" if turn else moment["tool_name"]
            row = {"who": "model" if turn else "tool", "what": what}
            rows.append(row | {"start_ms": start_ms, "end_ms": moment["t_ms"]})
            start_ms = moment["t_ms"]
    return rows


def views(
    latency_ms: float = 2000, delay_ms: float = 60, clock: str = "virtual"
) -> pd.DataFrame:
    """One run with a slow tool, as four user interfaces show it.

    Columns: view, event, who, start_ms, end_ms. The event is "shown", or "silence":
    from one moment in which something appears to the next. The first rows have no
    view: "work", by whom.
    """
    settings = Settings(capacity=None, delay_ms=delay_ms, first_ms=latency_ms)
    _, moments = perform(clock, watched, settings, kind="scripted", name="slow")
    rows = [
        {"view": "", "event": "work"} | {k: v for k, v in part.items() if k != "what"}
        for part in parts(moments)
    ]
    for view, kinds in VIEWS.items():
        shown = sorted({m["t_ms"] for m in moments if m["type"] in kinds})
        for start_ms, end_ms in zip([0.0, *shown], shown, strict=False):
            times = {"start_ms": start_ms, "end_ms": end_ms}
            rows.append({"view": view, "event": "silence"} | times)
        for t_ms in shown:
            times = {"start_ms": t_ms, "end_ms": t_ms}
            rows.append({"view": view, "event": "shown"} | times)
    return pd.DataFrame(rows).fillna({"who": ""})


def longest(shown: pd.DataFrame) -> pd.DataFrame:
    """The longest silence of each view, in ms."""
    quiet = shown[shown.event == "silence"]
    lengths = (quiet.end_ms - quiet.start_ms).groupby(quiet["view"], sort=False).max()
    return lengths.rename("longest_silence_ms").to_frame()
