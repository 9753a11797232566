"""An API key that does not show: not in a repr, not in the words of an error."""

from labkit.errors import CallError, ConfigError

SHORTEST = 8  # shorter "keys" (mock's, say) are words that may stand anywhere


class Secret:
    """Holds a key, and takes it out of texts that come from elsewhere.

    >>> key = Secret("sk-0123456789")
    >>> key
    Secret(***)
    >>> key.scrub("no such key: sk-0123456789")
    'no such key: [API key]'
    """

    def __init__(self, value: str | None):
        # httpx would name the offending key in its own error, so look first.
        if value and not (value.isascii() and value.isprintable() and " " not in value):
            raise ConfigError(
                "api_key holds characters that no HTTP header may carry: look for a"
                " stray quote, space or line end in LLM_API_KEY",
                field="api_key",
            )
        self._value = value or ""

    def __repr__(self) -> str:
        return "Secret(***)" if self._value else "Secret()"

    def header(self) -> dict[str, str]:
        """The authorization header; none without a key."""
        return {"authorization": f"Bearer {self._value}"} if self._value else {}

    def scrub(self, text: str) -> str:
        """`text` without the key, also where only its beginning is left of a cut."""
        if len(self._value) < SHORTEST or self._value[:SHORTEST] not in text:
            return text
        for length in range(len(self._value), SHORTEST - 1, -1):
            text = text.replace(self._value[:length], "[API key]")
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
