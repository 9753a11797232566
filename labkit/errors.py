"""Everything that labkit raises, as one tree.

    LabkitError
    ├── ConfigError              bad input; also a ValueError
    └── CallError                one logical call failed
        ├── ConnectError         no connection was made: nothing was sent
        ├── StatusError          an HTTP status that is no success
        │   └── OutOfCredit      402: the account is empty
        ├── DeadlineError        one of our limits ran out; also a TimeoutError
        ├── Stopped              the caller's Stop was set
        └── StreamError          the body did not come to a proper end
            ├── IncompleteStream     it ended without a finish_reason
            │   └── EmptyStream      it held no data event at all
            ├── BrokenStream         the connection broke in mid body
            ├── MalformedStream      bytes that are no legal event, JSON or chunk
            └── ProviderError        an error object inside a 200 answer

`except CallError` is the net under one call. Whatever the failure, it carries
the text received before it (`partial`) and the story of the tries (`attempts`).

The message says what happened and what to do. No message holds an API key.
Errors survive `pickle` and `copy`, so they cross process borders whole.
"""

from typing import Any

__all__ = [
    "LabkitError",
    "ConfigError",
    "CallError",
    "ConnectError",
    "StatusError",
    "OutOfCredit",
    "DeadlineError",
    "Stopped",
    "StreamError",
    "IncompleteStream",
    "EmptyStream",
    "BrokenStream",
    "MalformedStream",
    "ProviderError",
    "shorten",
]


def shorten(text: str, limit: int = 200) -> str:
    """Other people's words, fit for one line of a message.

    White space and control characters become single spaces, and what is longer
    than `limit` characters is cut, visibly.

    >>> shorten("too\\n  many\\ttokens")
    'too many tokens'
    >>> shorten("abcdefghij", limit=6)
    'abc...'
    """
    # A few characters more than the limit are enough, however long the text is.
    head = text[: 4 * limit]
    printable = "".join(char if char.isprintable() else " " for char in head)
    line = " ".join(printable.split())
    whole = len(line) <= limit and len(text) <= 4 * limit
    return line if whole else line[: limit - 3] + "..."


class LabkitError(Exception):
    """The root: `except LabkitError` catches all that labkit raises on purpose."""

    def __reduce__(self):
        # By default Python rebuilds an exception as cls(*args), which fails when
        # a constructor has required keywords. Here the attributes travel instead.
        return _revive, (type(self), self.args), self.__dict__.copy()


def _revive(cls: type[LabkitError], args: tuple) -> LabkitError:
    """An exception of `cls` that skips `__init__`: its attributes come after."""
    error = cls.__new__(cls)
    error.args = args
    return error


class ConfigError(LabkitError, ValueError):
    """A setting that cannot work. `field` names it.

    >>> raise ConfigError("total_s is -1: give a number above 0", field="total_s")
    Traceback (most recent call last):
    labkit.errors.ConfigError: total_s is -1: give a number above 0
    """

    def __init__(self, message: str, *, field: str):
        super().__init__(message)
        self.field = field


class CallError(LabkitError):
    """One logical call (with all its tries) failed.

    partial: the text received before the failure. Fit to show, never to save as
        an answer.
    attempts: one record for each request that was sent, filled in by the client.
    sent: False where it is certain that nothing of the request left.
    opened: True where the answer had begun: some text, or a tool call.
    """

    sent = True
    opened = False

    def __init__(
        self, message: str, *, partial: str = "", attempts: list | None = None
    ):
        super().__init__(message)
        self.partial = partial
        self.attempts = attempts if attempts is not None else []


class ConnectError(CallError):
    """No connection was made, so nothing was sent and nothing can have run."""


class StatusError(CallError):
    """The provider answered with a status that is no success.

    status: the HTTP status code.
    verdict: what `labkit.backoff.classify` makes of it.
    detail: the provider's own words, shortened.
    headers: the few that matter (retry-after and the like), never the whole set.
    """

    def __init__(
        self,
        message: str,
        *,
        status: int,
        verdict: str = "fatal",
        detail: str = "",
        headers: dict[str, str] | None = None,
        **kw: Any,
    ):
        super().__init__(message, **kw)
        self.status = status
        self.verdict = verdict
        self.detail = detail
        self.headers = headers if headers is not None else {}


class OutOfCredit(StatusError):
    """402: the account is empty. Buy credit; a retry changes nothing."""

    def __init__(self, message: str, *, status: int = 402, **kw: Any):
        super().__init__(message, status=status, **kw)


class DeadlineError(CallError, TimeoutError):
    """One of our own limits ran out.

    limit: which one: "connect", "open", "idle" or "total".
    after_s: seconds from the start of the call until it fired.
    """

    def __init__(self, message: str, *, limit: str, after_s: float, **kw: Any):
        super().__init__(message, **kw)
        self.limit = limit
        self.after_s = after_s


class Stopped(CallError):
    """The caller's Stop was set. `reason` is the one given to `Stop.set`."""

    def __init__(self, message: str, *, reason: str = "stopped", **kw: Any):
        super().__init__(message, **kw)
        self.reason = reason


class StreamError(CallError):
    """The body did not come to a proper end: what was read is no answer."""


class IncompleteStream(StreamError):
    """The answer ended without a finish_reason, whether `[DONE]` came or not.

    Such a stream did not finish: it stopped (chapter 14).
    """


class EmptyStream(IncompleteStream):
    """A 200 with no data event: an empty body, comments only, `[DONE]` only."""


class BrokenStream(StreamError):
    """The connection broke in mid body: a reset, or a chunked body cut short."""


class MalformedStream(StreamError):
    """The body holds bytes that are no legal event, JSON or chat chunk, or a tool call
    that is lost, nameless or cut off before its arguments."""


class ProviderError(StreamError):
    """The provider reported an error inside an answer that began as a success.

    type, code: as the provider sent them; None where it sent none.
    """

    def __init__(
        self,
        message: str,
        *,
        type: str | None = None,
        code: str | int | None = None,
        **kw: Any,
    ):
        super().__init__(message, **kw)
        self.type = type
        self.code = code
