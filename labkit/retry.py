"""Whether to ask again, and after how long: the rules of one logical call.

Never after the answer has begun: what the reader has seen cannot be taken back.
A request that may have run (chapter 14, "idempotency") is sent again only with an
idempotency key, and where the provider honours it; one that was refused, always.
"""

import math
import re
from dataclasses import dataclass
from random import Random

from labkit.backoff import RULES, STRATEGIES, classify, retry_after, wait
from labkit.errors import (
    CallError,
    ConfigError,
    ConnectError,
    DeadlineError,
    MalformedStream,
    ProviderError,
    StatusError,
    Stopped,
)
from labkit.limits import is_number

# Turned away at the door, so nothing was generated. 529 is a vendor's 503.
REFUSED = (429, 503, 529)

# The types of errors inside a stream, as the status they stand for.
STATUS_OF_TYPE = {
    "rate_limit_error": 429,
    "api_error": 500,
    "server_error": 500,
    "overloaded_error": 529,
}


@dataclass(frozen=True)
class Retry:
    """The retry policy of a client.

    attempts: the most requests for one logical call. 1: no retry.
    budget_s: the most seconds that one logical call may sleep between them. A wait
        that does not fit is not begun (one that is equal does fit).
    strategy, base_s, cap_s: the backoff, a name in `backoff.STRATEGIES`.
    floor: what becomes of Retry-After: "max", "plus" or "ignore" (`backoff.wait`).
    idempotent: the provider honours Idempotency-Key. None: the client decides.

    >>> Retry(strategy="fibonacci")
    Traceback (most recent call last):
    labkit.errors.ConfigError: strategy is 'fibonacci': choose none, exponential, \
full, equal or decorrelated
    """

    attempts: int = 5
    budget_s: float = 60.0
    strategy: str = "full"
    base_s: float = 0.2
    cap_s: float = 20.0
    floor: str = "max"
    idempotent: bool | None = None

    def __post_init__(self):
        if type(self.attempts) is not int or self.attempts < 1:
            raise self._bad("attempts", "give a whole number from 1")
        for name in ("budget_s", "base_s", "cap_s"):
            value = getattr(self, name)
            if not (is_number(value) and 0 <= value < math.inf):
                raise self._bad(name, "give a finite number of seconds, 0 or more")
        for name, known in (("strategy", STRATEGIES), ("floor", RULES)):
            if getattr(self, name) not in known:
                *names, last = known
                raise self._bad(name, f"choose {', '.join(names)} or {last}")

    def _bad(self, name: str, mend: str) -> ConfigError:
        return ConfigError(f"{name} is {getattr(self, name)!r}: {mend}", field=name)


@dataclass(frozen=True)
class Decision:
    """What follows a failed attempt. `why_not` is "" where a retry follows."""

    verdict: str
    floor_s: float | None = None
    draw_s: float | None = None
    sleep_s: float = 0.0
    why_not: str = ""

    @property
    def again(self) -> bool:
        return self.verdict != "fatal" and not self.why_not


class Retries:
    """Decides for one logical call. Keeps count of the time slept."""

    def __init__(self, retry: Retry, rng: Random, idempotent: bool):
        self.retry = retry
        self.rng = rng
        self.idempotent = idempotent
        self.slept_s = 0.0
        self._draw_s: float | None = None

    def decide(
        self, error: CallError, attempt: int, left_s: float, now: float
    ) -> Decision:
        """After attempt number `attempt` failed with `error`.

        left_s: until the total limit. now: seconds since 1970, for HTTP dates.
        """
        verdict = verdict_of(error)
        if verdict == "fatal":
            return Decision(verdict)
        why_not = self._refusal(error, attempt)
        if why_not:
            return Decision(verdict, why_not=why_not)

        retry = self.retry
        floor_s = retry_after(getattr(error, "headers", {}), now)
        self._draw_s = STRATEGIES[retry.strategy](
            attempt, self.rng, retry.base_s, retry.cap_s, self._draw_s
        )
        sleep_s = wait(floor_s, self._draw_s, retry.floor)
        why_not = self._too_long(sleep_s, left_s)
        if why_not:
            return Decision(verdict, floor_s, self._draw_s, why_not=why_not)
        self.slept_s += sleep_s
        return Decision(verdict, floor_s, self._draw_s, sleep_s)

    def _refusal(self, error: CallError, attempt: int) -> str:
        """Why no retry may follow, however short the wait."""
        if may_have_run(error) and not self.idempotent:
            return (
                "the request may have run, and it carried no idempotency key, or"
                " Retry.idempotent does not say that the provider honours them"
            )
        if attempt + 1 >= self.retry.attempts:
            return f"that was attempt {attempt + 1} of {self.retry.attempts}"
        return ""

    def _too_long(self, sleep_s: float, left_s: float) -> str:
        """Why a wait does not fit: then it is not begun at all."""
        budget_s = self.retry.budget_s - self.slept_s
        # Waits that were summed up as floats may be a billionth off: 0.1 + 0.2 > 0.3.
        # At the very end of total_s there would be no time left for the request.
        if sleep_s <= budget_s + 1e-9 and sleep_s < left_s:
            return ""
        room_s, name = min((budget_s, "budget_s"), (left_s, "total_s"))
        return (
            f"the wait would be {sleep_s:.4g} s, and {room_s:.4g} s are left of {name}"
        )


def verdict_of(error: CallError) -> str:
    """`classify` for every error: "retry", "retry-after" or "fatal"."""
    if isinstance(error, StatusError):
        return error.verdict
    if isinstance(error, ProviderError):
        return classify(_status(error) or 400)
    if isinstance(error, DeadlineError):
        return "fatal" if error.limit == "total" else "retry"
    # Malformed: no accident of the network, so the same bytes would come again.
    return "fatal" if isinstance(error, (MalformedStream, Stopped)) else "retry"


def may_have_run(error: CallError) -> bool:
    """Whether the provider may have generated (and billed) an answer."""
    if isinstance(error, ConnectError) or not error.sent:
        return False
    if isinstance(error, DeadlineError):
        return error.limit != "connect"
    # Words of refusal after the answer has begun: it was not turned away at the door.
    return error.opened or _status(error) not in REFUSED


def _status(error: CallError) -> int | None:
    """The HTTP status of an error, or the one that the provider's words stand for."""
    if isinstance(error, StatusError):
        return error.status
    if not isinstance(error, ProviderError):
        return None
    if re.fullmatch("[45][0-9][0-9]", str(error.code)):
        return int(error.code)
    return STATUS_OF_TYPE.get(error.type)
