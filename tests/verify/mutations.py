"""Damage: to bytes, as disks and editors do it; to JSON values, as programs do it."""

import json
from random import Random
from typing import Any

ODD = (
    None, True, False, 0, 1, -1, 2**63, 10**400 + 1, 1.5, -0.0, 1e308,
    "", "x", "0", "\0", "\ud83c", "\u2028", "n1", "c1", "1e999",
    [], {}, [[]], [None], [{}], {"": None}, {"id": 1}, [1, 2],
)  # fmt: skip
SNIPPETS = (
    b"\n", b"\r\n", b"}\n", b"{", b"}", b'"', b"\0", b"\xff", b"\xef\xbb\xbf", b"null",
    b"NaN", b"1e999", b"\\ud83c", b"[" * 3000, b'{"version":1}', b'{"a":' * 3000,
    b"9" * 5000,
)  # fmt: skip


def damage(data: bytes, rng: Random) -> bytes:
    """Cut off, with bits flipped, pieces lost, doubled, moved or put in between."""
    for _ in range(rng.choice((1, 1, 1, 2, 4))):
        a, b = sorted(rng.randrange(len(data) + 1) for _ in "ab")
        match rng.randrange(6):
            case 0:
                data = data[:a]
            case 1 if a < len(data):
                flipped = data[a] ^ (1 << rng.randrange(8))
                data = data[:a] + bytes([flipped]) + data[a + 1 :]
            case 2:
                data = data[:a] + data[b:]
            case 3:
                data = data[:b] + data[a:]
            case 4:
                data = data[:a] + rng.choice(SNIPPETS) + data[a:]
            case 5:
                data = data[b:] + data[:a]
    return data


def copy(value: Any) -> Any:
    """So that no part of a value is part of another, or of itself."""
    return json.loads(json.dumps(value))


def change(value: Any, rng: Random) -> Any:
    """A copy of a JSON value in which one to three places are not as they were."""
    value = copy(value)
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        places = list(_places(value))
        if not places:
            return copy(rng.choice(ODD))
        holder, key = rng.choice(places)
        match rng.randrange(6):
            case 0 | 1:
                holder[key] = copy(rng.choice(ODD))
            case 2:
                del holder[key]
            case 3:
                other, there = rng.choice(places)
                holder[key] = copy(other[there])
            case 4 if isinstance(holder, list):
                holder.insert(key, copy(holder[key]))
            case 4:
                name = rng.choice(("", "x", key + " ", "version", "id"))
                holder[name] = copy(holder[key])
            case 5 if isinstance(holder[key], str):
                text = damage(holder[key].encode("utf-8", "replace"), rng)
                holder[key] = text.decode("utf-8", "replace")
            case 5:
                holder[key] = rng.choice((str, lambda it: [it]))(holder[key])
    return value


def _places(value: Any):
    """Each place in a value: what holds it, and under which key."""
    keys = value if isinstance(value, dict) else range(len(value))
    for key in keys:
        yield value, key
        if isinstance(value[key], dict | list):
            yield from _places(value[key])
