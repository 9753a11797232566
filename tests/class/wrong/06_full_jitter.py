"""Typical wrong answers to exercise 6."""

from wrong_answers import Wrong

TEN_PERCENT = """
def full_jitter(attempt, rng, base_s=0.2, cap_s=20.0):
    doubled_s = base_s * 2.0 ** min(attempt, 1000)
    return min(cap_s, doubled_s) * rng.uniform(0.9, 1.0)
"""

AROUND = """
def full_jitter(attempt, rng, base_s=0.2, cap_s=20.0):
    doubled_s = base_s * 2.0 ** min(attempt, 1000)
    return min(cap_s, doubled_s) * rng.uniform(0.9, 1.1)
"""

CAP_LAST = """
def full_jitter(attempt, rng, base_s=0.2, cap_s=20.0):
    doubled_s = base_s * 2.0 ** min(attempt, 1000)
    return min(cap_s, rng.uniform(0, doubled_s))
"""

NO_ROOM = """
def full_jitter(attempt, rng, base_s=0.2, cap_s=20.0):
    return rng.uniform(0, min(cap_s, base_s * 2.0**attempt))
"""

EQUAL = """
def full_jitter(attempt, rng, base_s=0.2, cap_s=20.0):
    longest_s = min(cap_s, base_s * 2.0 ** min(attempt, 1000))
    return longest_s / 2 + rng.uniform(0, longest_s / 2)
"""

WRONG = [
    Wrong(
        "10 % around the exponential wait",
        {"full-jitter": AROUND},
        loses={"full-jitter-range", "full-jitter-cap", "full-jitter-herd"},
        hint="a narrow band",
    ),
    Wrong(
        "up to 10 % less than the exponential wait",
        {"full-jitter": TEN_PERCENT},
        loses={"full-jitter-range", "full-jitter-herd"},
        hint="a herd in step",
    ),
    Wrong(
        "half for certain (equal jitter)",
        {"full-jitter": EQUAL},
        loses={"full-jitter-range"},
        hint="How short may a wait be?",
    ),
    Wrong(
        "caps what was drawn",
        {"full-jitter": CAP_LAST},
        loses={"full-jitter-cap"},
        hint="the cap or the draw",
    ),
    Wrong(
        "doubles without end",
        {"full-jitter": NO_ROOM},
        loses={"full-jitter-cap"},
        hint="outgrows a float",
    ),
]
