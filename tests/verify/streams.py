"""Random streams that are legal by the grammar of the standard, and random cuts.

The grammar: https://html.spec.whatwg.org/multipage/server-sent-events.html, "Parsing
an event stream". It lets through nearly all: any field name, any character but LF and
CR in a value, NUL too. hypothesis would take minutes for 100,000 of these.
"""

from itertools import pairwise
from random import Random

BOM = b"\xef\xbb\xbf"
ENDS = ("\n", "\r\n", "\r")
# One to four bytes of UTF-8, the first and last of each length, and all that another
# definition of a line, of white space or of a text's start might trip over.
CHARACTERS = (
    "a", "Z", "0", " ", ":", "{", "\x7f", "\0", "\t", "\x0b", "\x0c", "\x1c", "\x85",
    "\x80", "\u07ff", "\u0800", "\ufeff", "\u2028", "\u2029", "\ud7ff", "\ue000",
    "\uffff", "\U00010000", "\U0010ffff", "\U0001f30a", "\u00e9", "\u6f6e", "data",
)  # fmt: skip
NAMES = ("data",) * 8 + ("id", "id", "event", "event", "retry", "")
UNKNOWN = ("Data", "data ", " data", "dat", "datax", "\ufeffdata", "\0", "error", "x")
NUMBERS = (
    "0", "7", "250", "0042", "9" * 15, "1" + "0" * 15, "9" * 40, "0" * 20 + "5",
    "", " 5", "5 ", "+5", "-5", "1_0", "1.5", "1e3", "\u0663", "\uff15", "0x1",
)  # fmt: skip


def legal_stream(rng: Random) -> bytes:
    """A stream of a few events. One in four is cut off, between two characters."""
    lines = []
    for _ in range(rng.randrange(5)):
        lines += [_field(rng) for _ in range(rng.choice((0, 1, 1, 2, 3, 5)))]
        lines.append("")
    ends = ENDS if rng.random() < 0.4 else (rng.choice(ENDS),)
    text = "".join(line + rng.choice(ends) for line in lines)
    if rng.random() < 0.25:
        text = text[: rng.randrange(len(text) + 1)]
    start = BOM if rng.random() < 0.1 else b""
    return start + text.encode()


def _field(rng: Random) -> str:
    """One line: a field, a comment, a field without a colon."""
    name = rng.choice(NAMES) if rng.random() < 0.9 else rng.choice(UNKNOWN)
    if name == "retry" and rng.random() < 0.9:
        value = rng.choice(NUMBERS)
    else:
        value = "".join(rng.choices(CHARACTERS, k=rng.choice((0, 1, 2, 5))))
    if name and not value and rng.random() < 0.5:
        return name
    return name + rng.choice((": ", ": ", ":")) + value


def cut(body: bytes, rng: Random) -> list[bytes]:
    """The body in pieces: byte by byte, at random places, some of them empty."""
    if rng.random() < 0.2:
        return [body[at : at + 1] for at in range(len(body))]
    places = [rng.randrange(len(body) + 1) for _ in range(rng.randrange(1, 8))]
    return [body[a:b] for a, b in pairwise([0, *sorted(places), len(body)])]
