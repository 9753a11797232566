"""How a number is written for a reader: by the unit in the name of its column."""

import math

SHARES = ("wrong", "raised", "share_of_naive")
UNITS = {"_s": " s", "_ms": " ms", "_percent": " %"}
NOTHING = {"default_s": "none: for ever", "gave_up_after_s": "not fired"}


def shown(column: str, value) -> str:
    """A value as a person wants to read it; files keep it whole.

    >>> shown("wall_ms", 6613.192), shown("wall_s", 225.536693), shown("wall_s", 1.87)
    ('6,613', '225.5', '1.87')
    >>> shown("cost_usd", 0.00247), shown("share_of_naive", 0.3609), shown("turns", 3)
    ('0.002470', '36.1 %', '3')
    """
    if value is None:
        return NOTHING.get(column, "")
    if isinstance(value, (bool, str)):
        return str(value)
    if column in SHARES:
        return f"{100 * value:.1f} %"
    if column.endswith("_usd"):
        return f"{value:.6f}"
    if column.endswith("_ms"):
        return plain(value, 0 if value >= 100 else 1)
    return plain(value, 1 if value >= 10 else 4 if column.startswith("times") else 2)


def with_unit(name: str, value: float) -> str:
    """A number for a reader, with the unit that the name ends in.

    >>> with_unit("gate.wall_ms", 882.0), with_unit("cap.100_usd", 0.702198)
    ('882 ms', '$0.702')
    >>> with_unit("errors.times", 4.6958), with_unit("flaky.finished_percent", 35.849)
    ('4.7', '35.8 %')
    """
    size = abs(value)
    digits = 3 - math.ceil(math.log10(size)) if size else 0
    text = plain(value, 1 if 10 <= size < 1000 else max(0, digits))
    if name.endswith("_usd"):
        return f"${text}"
    unit = next((unit for end, unit in UNITS.items() if name.endswith(end)), "")
    return f"{text}{unit}"


def plain(value: float, decimals: int) -> str:
    """Thousands apart, and no decimals that say nothing."""
    text = f"{value:,.{decimals}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text
