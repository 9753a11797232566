"""When to ask again: what a status means, how long to wait, what the server asks.

Pure functions. Time and chance come in as arguments: `now` is seconds since 1970,
`rng` a `random.Random` (its `uniform` is all that is used). Waits are in seconds,
attempts count from 0.

Sources: chapter 14, "triage" and "jitter"; RFC 9110, sections 10.2.3 (Retry-After)
and 15 (statuses); M. Brooker, "Exponential Backoff And Jitter", AWS architecture
blog, 2015 (full, equal, decorrelated).
"""

import math
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_tz
from http import HTTPStatus


def classify(status: int) -> str:
    """What an HTTP status tells the client to do.

    "ok", "retry", "retry-after" (retry, and the server may say when) or "fatal"
    (the same request gets the same answer, however often it is sent).

    >>> [classify(status) for status in (200, 429, 503, 401, 402)]
    ['ok', 'retry-after', 'retry', 'fatal', 'fatal']
    """
    # Ours to decide: 409 and 425 say that another try of this request, or its early
    # data, is still under way (IETF Idempotency-Key draft; RFC 8470), so a later one
    # can succeed. 501 stays with the other 5xx: no proxy is to be trusted with the
    # difference, and the number of tries is bounded.
    if 200 <= status < 300:
        return "ok"
    if status == 429:
        return "retry-after"
    if status in (408, 409, 425) or status >= 500:
        return "retry"
    return "fatal"  # 3xx too: a POST is not sent on to another address


MEANINGS = {
    400: "bad request: mend the body",
    401: "bad API key: check LLM_API_KEY",
    402: "out of credit: buy credit",
    403: "not allowed: this key may not use the model or region",
    404: "not found: check the base URL and the model's name",
    408: "the server waited too long for the request",
    409: "conflict: another try with this key is still running",
    413: "too large: shorten the messages",
    422: "cannot be processed: mend the body, or use a new idempotency key",
    425: "too early: the server would not risk a replay",
    429: "too many requests or tokens: slow down",
    500: "the provider failed",
    501: "the provider does not know this method",
    502: "a gateway got no proper answer from the provider",
    503: "the provider is not available now",
    504: "a gateway waited too long for the provider",
    529: "the provider is overloaded",
}


def meaning(status: int) -> str:
    """A status in words, with what to do where that is known.

    >>> meaning(402)
    'out of credit: buy credit'
    >>> meaning(418), meaning(599)
    ("I'm a Teapot", 'unknown status')
    """
    if status in MEANINGS:
        return MEANINGS[status]
    known = {each.value: each.phrase for each in HTTPStatus}
    return known.get(status, "unknown status")


# The five strategies take the same arguments, so that one can stand for another.
# `attempt` is the number of the try that failed; `previous_s` the draw before.


def none(attempt, rng, base_s=0.2, cap_s=20.0, previous_s=None):
    """Ask again at once."""
    return 0.0


def exponential(attempt, rng, base_s=0.2, cap_s=20.0, previous_s=None):
    """Twice as long each time, up to the cap: everyone who fails together returns
    together.

    >>> [exponential(attempt, None) for attempt in (0, 1, 2, 10_000)]
    [0.2, 0.4, 0.8, 20.0]
    """
    # 2.0 ** 1024 is an OverflowError; any cap is reached long before 1000 doublings.
    return min(cap_s, base_s * 2.0 ** min(attempt, 1000))


def full(attempt, rng, base_s=0.2, cap_s=20.0, previous_s=None):
    """Anywhere between nothing and the exponential wait: full jitter."""
    return rng.uniform(0.0, exponential(attempt, rng, base_s, cap_s))


def equal(attempt, rng, base_s=0.2, cap_s=20.0, previous_s=None):
    """Half of the exponential wait for certain, the other half by chance."""
    half = exponential(attempt, rng, base_s, cap_s) / 2
    return half + rng.uniform(0.0, half)


def decorrelated(attempt, rng, base_s=0.2, cap_s=20.0, previous_s=None):
    """Between the base and three times the draw before: no look at the attempt."""
    before = base_s if previous_s is None else max(base_s, previous_s)
    return min(cap_s, rng.uniform(base_s, 3 * before))


STRATEGIES = {
    "none": none,
    "exponential": exponential,
    "full": full,
    "equal": equal,
    "decorrelated": decorrelated,
}


def retry_after(headers: Mapping[str, str], now: float) -> float | None:
    """Seconds that the server asks the client to wait; None if it gives no hint.

    `retry-after-ms` (what SDKs agree on) beats `retry-after` (seconds, or an HTTP
    date in any of its three forms). `now`: seconds since 1970.

    >>> retry_after({"Retry-After": "2"}, now=0)
    2.0
    >>> retry_after({"retry-after": "Thu, 01 Jan 1970 00:01:00 GMT"}, now=15)
    45.0
    >>> retry_after({"retry-after-ms": "50", "retry-after": "20"}, now=0)
    0.05

    No hint either: 0, a date that is past, a sign, nan, inf, 1e999, junk. To obey a
    0 would make a loop without a pause; the client's own backoff is kinder.

    "1.5" is 1.5, though RFC 9110 allows whole seconds only: providers send it, and
    to ignore it would mean to come back too early, the one fault nobody forgives.
    """
    named = {name.lower(): value.strip() for name, value in headers.items()}
    waits = (
        _seconds(named.get("retry-after-ms", "")) / 1000,
        _seconds(named.get("retry-after", "")),
        _until(named.get("retry-after", ""), now),
    )
    return next((wait for wait in waits if 0 < wait < math.inf), None)


FOREVER_S = 1e15


def _seconds(text: str) -> float:
    """A plain decimal number, or 0. (float() alone would take nan, 1e3, 1_0, +1.)"""
    if not re.fullmatch(r"[0-9]+(\.[0-9]+)?", text):
        return 0.0
    return min(float(text), FOREVER_S)  # 400 digits are a long wait, and legal


def _until(text: str, now: float) -> float:
    """Seconds from `now` to an HTTP date, or 0 for what is none."""
    # The three forms: "Sun, 06 Nov 1994 08:49:37 GMT", "Sunday, 06-Nov-94 08:49:37
    # GMT", "Sun Nov  6 08:49:37 1994". strptime() would depend on the locale.
    if not re.match(r"(Mon|Tue|Wed|Thu|Fri|Sat|Sun)[a-z]*,? ", text):
        return 0.0
    try:
        *fields, zone_s = parsedate_tz(text)
        there = datetime(*fields[:6], tzinfo=UTC).timestamp()
    except (TypeError, ValueError, OverflowError):  # no date, or no such date
        return 0.0
    return there - (zone_s or 0) - now


def wait(floor_s: float | None, draw_s: float, rule: str = "max") -> float:
    """Seconds to sleep, from what the server asks (None: nothing) and our own draw.

    "max" is the chapter's rule: never less than either. "plus" adds them, so that
    clients sent away together do not return together. "ignore" is the draw alone.

    >>> wait(1.0, 0.3), wait(1.0, 0.3, "plus"), wait(1.0, 0.3, "ignore")
    (1.0, 1.3, 0.3)
    """
    return RULES[rule](floor_s or 0.0, draw_s)


RULES = {
    "max": max,
    "plus": lambda floor_s, draw_s: floor_s + draw_s,
    "ignore": lambda floor_s, draw_s: draw_s,
}
