"""Typical wrong answers to exercise 16."""

from wrong_answers import Wrong

LONGER = """
def policy(attempt, floor_s, rng):
    draw_s = rng.uniform(0, min(20, 0.2 * 2 ** min(attempt, 10)))
    return max(floor_s, draw_s)
"""

PLUS_FULL_JITTER = """
def policy(attempt, floor_s, rng):
    return floor_s + rng.uniform(0, min(20, 0.2 * 2 ** min(attempt, 10)))
"""

WHOLE_WINDOW = """
def policy(attempt, floor_s, rng):
    if floor_s:
        return floor_s + rng.uniform(0, 60)
    return rng.uniform(0, min(20, 0.2 * 2 ** min(attempt, 10)))
"""

IGNORED = """
def policy(attempt, floor_s, rng):
    return rng.uniform(0, min(20, 0.2 * 2 ** min(attempt, 10)))
"""

WRONG = [
    Wrong(
        "max(floor, jitter)",
        {"two-limiters": LONGER},
        loses={"limiters-apart", "limiters-requests"},
        hint="the header undoes the jitter",
    ),
    Wrong(
        "full jitter behind the floor",
        {"two-limiters": PLUS_FULL_JITTER},
        loses={"limiters-requests"},
        hint="all five places taken",
    ),
    Wrong(
        "spread over a whole window",
        {"two-limiters": WHOLE_WINDOW},
        loses={"limiters-late"},
        hint="The header was true",
    ),
    Wrong(
        "ignores the header",
        {"two-limiters": IGNORED},
        loses={"limiters-floor", "limiters-requests"},
        hint="too early",
    ),
]
