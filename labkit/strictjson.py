"""JSON from strangers: strict, and every refusal is a ValueError that says why. And
our own, as it is written everywhere: `encode`.

`json.loads` lets four things pass that break a program later: the literals NaN and
Infinity, which are no JSON (RFC 8259, section 6); numbers like 1e999, which become an
infinity all the same; nesting so deep that it raises RecursionError; and half a
surrogate pair, which cannot be encoded as UTF-8 again.
"""

import json
import math
import re
from typing import Any

WHITE_SPACE = " \t\r\n"  # all that JSON knows (RFC 8259, section 2)
# One line of ASCII. Made once: json.dumps would make it anew for each call.
encode = json.JSONEncoder(allow_nan=False, separators=(",", ":")).encode
SURROGATE = re.compile("[\ud800-\udfff]")


def _refuse(literal: str) -> None:
    raise ValueError(f"{literal} is no JSON value")


def _finite(digits: str) -> float:
    number = float(digits)
    if math.isinf(number):
        raise ValueError(f"{digits[:20]} is too large a number")
    return number


# raw_decode, not loads: half the overhead per call, and a stream has thousands.
_raw_decode = json.JSONDecoder(parse_constant=_refuse, parse_float=_finite).raw_decode


def parse_object(text: str) -> dict[str, Any]:
    """The one JSON object in `text`. ValueError says what stands there instead.

    >>> parse_object('{"tide": 1.5}')
    {'tide': 1.5}
    >>> parse_object('{"tide": NaN}')
    Traceback (most recent call last):
    ValueError: NaN is no JSON value
    >>> parse_object('[1, 2]')
    Traceback (most recent call last):
    ValueError: a value of type list, not an object
    """
    text = text.strip(WHITE_SPACE)
    try:
        value, end = _raw_decode(text)
    except RecursionError:
        raise ValueError("the JSON is nested too deeply") from None
    if end != len(text):
        raise ValueError(f"text follows the JSON at character {end}")
    return as_object(value)


def as_object(value: Any) -> dict[str, Any]:
    """`value`, if it is a JSON object; else a ValueError."""
    if type(value) is dict:
        return value
    raise ValueError(f"a value of type {type(value).__name__}, not an object")


def member(obj: dict[str, Any], key: str, kind: type) -> Any:
    """`obj[key]`, or None if it is absent or null. ValueError if it is no `kind`.

    >>> member({"index": 2}, "index", int)
    2
    >>> member({"index": True}, "index", int)
    Traceback (most recent call last):
    ValueError: `index` is of type bool, not int
    """
    value = obj.get(key)
    # The exact type, because in Python True is an int as well.
    if value is None or type(value) is kind:
        return value
    found = type(value).__name__
    raise ValueError(f"`{key}` is of type {found}, not {kind.__name__}")


def mend(text: str) -> str:
    r"""Join surrogate pairs; a half without its other half becomes U+FFFD.

    JSON escapes a character beyond U+FFFF as a pair, and a model's tokens may cut
    between the two: concatenate first, then mend.

    >>> mend("\ud83c" + "\udf0a") == "\N{WATER WAVE}"
    True
    >>> mend("cut \ud83c")
    'cut \ufffd'
    """
    if text.isascii() or not SURROGATE.search(text):
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
