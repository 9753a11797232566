"""What stands where an answer should be, as an error that says so. Pure functions."""

from typing import Any

from labkit.errors import MalformedStream, ProviderError, shorten
from labkit.strictjson import parse_object


def malformed(what: str, data: str, error: ValueError, partial: str) -> MalformedStream:
    """`data` is not in the form. `what`: the name of its place, "chunk 3"."""
    return MalformedStream(
        f"{what}, {shorten(data, 60)!r}, is not in the Chat Completions form"
        f" ({shorten(str(error))}): check that the base URL is an"
        " OpenAI-compatible endpoint",
        partial=partial,
    )


def provider_error(error: Any, partial: str) -> ProviderError:
    """From whatever stood in the place of the error: an object or some text."""
    told = error if isinstance(error, dict) else {"message": error}
    words = shorten(str(told.get("message") or told))
    kind, code = told.get("type"), told.get("code")
    return ProviderError(
        f"the provider reported an error inside its 200 answer: {words}"
        f" (type {shorten(str(kind))}, code {shorten(str(code))}); what came"
        " before it is no answer",
        type=kind if isinstance(kind, str) else None,
        code=code if isinstance(code, str | int) else None,
        partial=partial,
    )


def error_event(data: str) -> Any:
    """The error in an `event: error`: an object if it is JSON, else the words."""
    if not data:
        return "it gave no words"
    try:
        told = parse_object(data)
    except ValueError:
        return data
    return told.get("error") or told
