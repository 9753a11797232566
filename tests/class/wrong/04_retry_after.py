"""Typical wrong answers to exercise 4."""

from wrong_answers import Wrong

INT = """
def asked_wait(headers, now):
    if "retry-after-ms" in headers:
        return int(headers["retry-after-ms"]) / 1000
    if "retry-after" in headers:
        return float(headers["retry-after"])
    return None
"""

# It sees to it that nothing is raised, and takes each date for junk.
GUARDED_INT = """
import math


def asked_wait(headers, now):
    for name, unit_s in (("retry-after-ms", 0.001), ("retry-after", 1)):
        try:
            wait_s = float(headers[name]) * unit_s
        except (KeyError, ValueError):
            continue
        if 0 < wait_s < math.inf:
            return round(wait_s, 9)
    return None
"""

ABSOLUTE = """
import math
from email.utils import parsedate_to_datetime


def asked_wait(headers, now):
    readings = (
        lambda: float(headers["retry-after-ms"]) / 1000,
        lambda: float(headers["retry-after"]),
        lambda: parsedate_to_datetime(headers["retry-after"]).timestamp(),
    )
    for read in readings:
        try:
            wait_s = read()
        except (KeyError, ValueError):
            continue
        if 0 < wait_s < math.inf:
            return wait_s
    return None
"""

WRONG = [
    Wrong(
        "a number only",
        {"retry-after": INT},
        loses={"retry-after-date", "retry-after-junk"},
        hint="a date is no number",
    ),
    Wrong(
        "a number only, with a net",
        {"retry-after": GUARDED_INT},
        loses={"retry-after-date"},
        hint="a date is no number",
    ),
    Wrong(
        "takes the moment for the wait",
        {"retry-after": ABSOLUTE},
        loses={"retry-after-date", "retry-after-junk"},
        hint="How far is it from `now`?",
    ),
]
