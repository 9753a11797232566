"""What a call leaves behind: the answer, its times, and the story of its attempts."""

from dataclasses import dataclass, field

from labkit.assemble import ToolCall, Usage


@dataclass(frozen=True)
class Attempt:
    """One request of a logical call, and the wait after it. Times in seconds.

    number: from 0.
    started_s, ended_s: since the logical call began. An attempt ends with its
        answer, or with the failure.
    status: the HTTP status; None if no headers came.
    error: the name of the error's class; None for the attempt that succeeded.
    verdict: "ok", "retry", "retry-after" or "fatal".
    floor_s: what the server asked for (Retry-After); None if it did not.
    draw_s: what our own backoff drew; None where none was drawn.
    slept_s: the wait that followed, as long as it was in truth; 0.0 after the last
        attempt.
    """

    number: int
    started_s: float
    ended_s: float
    status: int | None
    error: str | None = None
    verdict: str = "ok"
    floor_s: float | None = None
    draw_s: float | None = None
    slept_s: float = 0.0


@dataclass(frozen=True)
class Timings:
    """Seconds since the logical call began, the failed attempts and waits included.

    opened_s: the headers of the answer were there.
    first_token_s: the first content that is not empty; None if there was none (a
        reply of tool calls only). What is called time to first token.
    complete_s: the answer was whole.
    """

    opened_s: float
    first_token_s: float | None
    complete_s: float


@dataclass(frozen=True)
class Reply:
    """One whole answer.

    finish_reason: "stop", "length" (cut by max_tokens), "tool_calls", ...
    usage: None where the provider did not say: unknown, not zero.
    headers: the few that tell something (x-..., idempotent-replay), names in lower
        case.
    """

    text: str
    tool_calls: tuple[ToolCall, ...]
    finish_reason: str
    usage: Usage | None
    timings: Timings
    attempts: tuple[Attempt, ...]
    headers: dict[str, str] = field(default_factory=dict)
    id: str = ""
