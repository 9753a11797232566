"""Typical wrong answers to exercise 10."""

from wrong_answers import Wrong

RESET_BY_ALL = """
async def guarded(events, idle_s, show):
    arriving = aiter(events)
    while True:
        async with asyncio.timeout(idle_s):
            event = await anext(arriving, None)
        if event is None:
            return
        kind, text = event
        if kind == "content":
            show(text)
"""

TOTAL = """
async def guarded(events, idle_s, show):
    async with asyncio.timeout(idle_s):
        async for kind, text in events:
            if kind == "content":
                show(text)
"""

NO_LIMIT = """
async def guarded(events, idle_s, show):
    async for kind, text in events:
        if kind == "content":
            show(text)
"""

ALL_EVENTS = """
def longest_silence(events):
    times = [t_s for t_s, _ in events]
    return max((b - a for a, b in zip(times, times[1:])), default=0.0)
"""

THE_LONGEST = """
def choose_idle(silences, kills):
    return max(silences)
"""

ONE_TOO_SHORT = """
def choose_idle(silences, kills):
    return sorted(silences, reverse=True)[min(kills + 1, len(silences) - 1)] - 0.1
"""

IN_SILENCE = """
async def guarded(events, idle_s, show):
    time = asyncio.get_running_loop().time
    try:
        async with asyncio.timeout(idle_s) as limit:
            async for kind, text in events:
                if kind == "content":
                    show(text)
                    limit.reschedule(time() + idle_s)
    except TimeoutError:
        return
"""

FROM_THE_QUESTION = """
def longest_silence(events):
    times = [0.0] + [t_s for t_s, kind in events if kind == "content"]
    return max(b - a for a, b in zip(times, times[1:]))
"""

WRONG = [
    Wrong(
        "keep-alives prolong the wait",
        {"guarded": RESET_BY_ALL},
        loses={"idle-stall"},
        hint="Each keep-alive began the wait anew",
    ),
    Wrong(
        "one limit for the whole answer",
        {"guarded": TOTAL},
        loses={"idle-healthy", "idle-stall"},
        hint="not for the whole answer",
    ),
    Wrong(
        "no limit at all",
        {"guarded": NO_LIMIT},
        loses={"idle-stall"},
        hint="waits for ever",
    ),
    Wrong(
        "keep-alives break a silence",
        {"longest-silence": ALL_EVENTS},
        loses={"idle-silence"},
        hint="A keep-alive is no content",
    ),
    Wrong(
        "the longest silence, whatever it costs",
        {"choose-idle": THE_LONGEST},
        loses={"idle-choose"},
        hint="Find the shortest",
    ),
    Wrong(
        "off by one",
        {"choose-idle": ONE_TOO_SHORT},
        loses={"idle-choose"},
        hint="too short",
    ),
    Wrong(
        "ends as if the answer were whole",
        {"guarded": IN_SILENCE},
        loses={"idle-stall"},
        hint="raise a TimeoutError",
    ),
    Wrong(
        "counts the time before the first content",
        {"longest-silence": FROM_THE_QUESTION},
        loses={"idle-silence"},
        hint="not from the question",
    ),
]
