"""What the provider counted; and the difference between nothing and not knowing."""

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Usage:
    """The token counts of one reply. `raw` has their details, cached input too."""

    prompt_tokens: int
    completion_tokens: int
    total_tokens: int
    raw: dict[str, Any] = field(default_factory=dict, repr=False, compare=False)

    @classmethod
    def read(cls, raw: object) -> "Usage | None":
        """None where the counts are missing or torn: no bill can be made from them.

        A prompt of 0 tokens is unknown too, since there is none. A budget that read
        it as free would never be spent. So is a count that no model can reach.

        >>> Usage.read({"prompt_tokens": 10, "completion_tokens": 5})
        Usage(prompt_tokens=10, completion_tokens=5, total_tokens=15)
        >>> Usage.read({"prompt_tokens": 0, "completion_tokens": 0}) is None
        True
        """
        if not isinstance(raw, dict):
            return None
        counts = raw.get("prompt_tokens"), raw.get("completion_tokens")
        if not all(map(is_count, counts)) or not counts[0]:
            return None
        total = raw.get("total_tokens")
        return cls(*counts, total if is_count(total) else sum(counts), raw)


def is_count(value: object) -> bool:
    """A whole number of tokens, within reason: JSON allows thousands of digits."""
    return type(value) is int and 0 <= value <= 10**12
