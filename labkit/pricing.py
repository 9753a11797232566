"""What a turn costs, in exact dollars (chapter 23, "the budget").

A run adds up thousands of amounts of a few millionths of a dollar and holds the sum
against a limit. With floats the sum drifts: ten times 0.1 is not 1.0. So money is
`Decimal`, and an operation that would have to round raises instead.
"""

import decimal
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal

from labkit.errors import ConfigError
from labkit.usage import Usage

EXACT = decimal.Context(prec=60, traps=[decimal.Inexact, decimal.InvalidOperation])
MILLIONTH = Decimal("0.000001")

Amount = Decimal | int | str | float


def money(value: Amount, field: str = "amount") -> Decimal:
    """Dollars, from what a person writes. A float counts as it is printed.

    >>> money("0.010"), money(0.1)
    (Decimal('0.010'), Decimal('0.1'))

    Raises ConfigError for what is no finite amount of 0 or more.
    """
    try:
        amount = Decimal(str(value)) if not isinstance(value, bool) else Decimal("NaN")
    except decimal.InvalidOperation:
        amount = Decimal("NaN")
    if not amount.is_finite() or amount < 0:
        raise ConfigError(
            f'{field} is {value!r}: give dollars, 0 or more, as in "0.05"', field=field
        )
    return amount


def add(*amounts: Decimal) -> Decimal:
    """The exact sum.

    >>> add(*[Decimal("0.1")] * 10) == 1
    True
    """
    total = Decimal(0)
    for amount in amounts:
        total = EXACT.add(total, amount)
    return total


@dataclass(frozen=True)
class Price:
    """US dollars per million tokens. Without a price of their own, cached input
    tokens cost what the others do.

    >>> Price("2.00", "12.00").input_per_million
    Decimal('2.00')
    """

    input_per_million: Amount
    output_per_million: Amount
    cached_input_per_million: Amount | None = None

    def __post_init__(self):
        for name in ("input_per_million", "output_per_million"):
            object.__setattr__(self, name, money(getattr(self, name), name))
        name = "cached_input_per_million"
        if getattr(self, name) is not None:
            object.__setattr__(self, name, money(getattr(self, name), name))


CHAPTER = Price("2.00", "12.00")  # the rate of chapters 16 and 23

SCENARIOS = (
    "plan runaway long recover forbidden once repeat destructive delete_twice slow"
    " pair delegate"
).split()

# model name -> Price; whoever knows other models hands `run` a mapping of their own
PRICES: dict[str, Price] = dict.fromkeys(SCENARIOS, CHAPTER)


def price_of(model: str, prices: Mapping[str, Price] | None = None) -> Price | None:
    """The price of a model; None where nobody has said: unknown, not free."""
    return (PRICES if prices is None else prices).get(model)


def cost(usage: Usage, price: Price) -> Decimal:
    """What one reply cost, in dollars, to the last digit.

    >>> cost(Usage(204, 23, 227), CHAPTER)
    Decimal('0.000684')

    Cached input tokens are part of the prompt tokens, and are read where OpenAI
    reports them: usage.prompt_tokens_details.cached_tokens.
    """
    cached = 0
    if price.cached_input_per_million is not None:
        cached = cached_tokens(usage)
    millionths = add(
        EXACT.multiply(usage.prompt_tokens - cached, price.input_per_million),
        EXACT.multiply(cached, price.cached_input_per_million or Decimal(0)),
        EXACT.multiply(usage.completion_tokens, price.output_per_million),
    )
    return plain(EXACT.scaleb(millionths, -6))


def cached_tokens(usage: Usage) -> int:
    """How many prompt tokens came from the provider's cache; 0 unless it says so."""
    details = usage.raw.get("prompt_tokens_details")
    count = details.get("cached_tokens") if isinstance(details, dict) else None
    return count if type(count) is int and 0 <= count <= usage.prompt_tokens else 0


def plain(amount: Decimal) -> Decimal:
    """The same amount with six decimals, or as many more as it really has.

    >>> plain(Decimal("0.00068400")), plain(Decimal("0.0000001"))
    (Decimal('0.000684'), Decimal('1E-7'))
    """
    try:
        return amount.quantize(MILLIONTH, context=EXACT)
    except decimal.Inexact:
        return amount.normalize(EXACT)
