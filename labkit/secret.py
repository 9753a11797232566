"""API keys that do not show: not in a repr, not in the words of an error."""

import json
import re
from collections.abc import Iterable, Mapping
from urllib.parse import quote

from labkit.errors import CallError, ConfigError

SHORTEST = 8  # shorter "keys" (mock's, say) are words that may stand anywhere
CARRY_KEYS = (
    "authorization",
    "proxy-authorization",
    "api-key",
    "x-api-key",
    "x-goog-api-key",
)


class Secret:
    """Holds the headers that carry a key, and takes the keys out of other texts.

    headers: all that the caller gives; `Authorization` there beats `api_key`.

    >>> key = Secret("sk-0123456789")
    >>> key
    Secret(***)
    >>> key.scrub("no such key: sk-0123456789")
    'no such key: [API key]'

    Raises ConfigError for a key that no header can carry.
    """

    def __init__(
        self, api_key: str | None = None, headers: Mapping[str, str] | None = None
    ):
        # httpx would name the offending key in its own error, so look first.
        if api_key and (not is_sendable(api_key) or " " in api_key):
            raise ConfigError(
                "api_key is no str that an HTTP header may carry: look for a stray"
                " quote, space or line end in LLM_API_KEY",
                field="api_key",
            )
        given = {name.lower(): value for name, value in (headers or {}).items()}
        own = {"authorization": f"Bearer {api_key}"} if api_key else {}
        self._headers = own | {n: given[n] for n in CARRY_KEYS if n in given}
        # "Bearer sk-..." is no key: its last word is.
        words = [value.split()[-1:] for value in self._headers.values()]
        self._keys = [key for key in (api_key or "", *sum(words, [])) if key]
        self._forms = [*dict.fromkeys(f for key in self._keys for f in forms(key))]

    def __repr__(self) -> str:
        return "Secret(***)" if self._keys else "Secret()"

    def headers(self) -> dict[str, str]:
        """The headers that carry a key; none without one."""
        return self._headers.copy()

    def scrub(self, text: str) -> str:
        """`text` without the keys, also where only the beginning is left of a cut."""
        if not any(form[:SHORTEST] in text for form in self._forms):
            return text
        ends = range(SHORTEST, 1 + max(map(len, self._forms)))
        beginnings = {form[:end] for form in self._forms for end in ends}
        for beginning in sorted(beginnings, key=len, reverse=True):
            text = text.replace(beginning, "[API key]")
        return text

    def scrub_error(self, error: CallError) -> None:
        """The same for all words of an error. `partial` stays: it is the answer."""
        error.args = tuple(map(self.scrub, error.args))
        for name, value in vars(error).items():
            if isinstance(value, str) and name != "partial":
                setattr(error, name, self.scrub(value))
        # What led to it quotes the wire too (JSONDecodeError holds the whole text),
        # and the message has said what matters of it.
        error.__cause__ = error.__context__ = None


def is_sendable(value: object) -> bool:
    """May it be the value of an HTTP header? Printable ASCII, no space at its ends."""
    is_plain = isinstance(value, str) and value.isascii() and value.isprintable()
    return is_plain and value == value.strip()


def forms(key: str) -> Iterable[str]:
    """How a key may come back: as it is, in a JSON string, in an address."""
    if len(key) < SHORTEST:
        return
    in_json = json.dumps(key)[1:-1]
    yield from (key, in_json, in_json.replace("/", r"\/"))
    for safe in ("", "/"):
        escaped = quote(key, safe=safe)
        yield escaped
        yield re.sub("%..", lambda code: code[0].lower(), escaped)
