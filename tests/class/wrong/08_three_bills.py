"""Typical wrong answers to exercise 8."""

from wrong_answers import Wrong

FOUR_TIMES = """
def doubled_usd(seen):
    paid = sum(prompt * IN_USD + said * OUT_USD for prompt, said in seen)
    return 4 * paid
"""

TWICE = """
def doubled_usd(seen):
    return 2 * sum(prompt * IN_USD + said * OUT_USD for prompt, said in seen)
"""

TURNS_TIMES_A_PRICE = """
def bill_usd(first, grows, said, turns):
    return turns * (first * IN_USD + said * OUT_USD)
"""

ALL_AT_THE_DISCOUNT = """
def cached_usd(first, grows, said, turns, cached):
    return bill_usd(first, grows, said, turns) * cached / 2
"""

WRONG = [
    Wrong(
        "four times the bill of half as many turns",
        {"doubled-usd": FOUR_TIMES},
        loses={"bills-doubled"},
        hint="Got 4 times the bill",
    ),
    Wrong(
        "twice the turns, twice the bill",
        {"doubled-usd": TWICE},
        loses={"bills-doubled"},
        hint="Got 2 times the bill",
    ),
    Wrong(
        "a turn has a price",
        {"bill-usd": TURNS_TIMES_A_PRICE},
        loses={"bills-formula"},
        hint="times the price of the first turn",
    ),
    Wrong(
        "the discount on all of the bill",
        {"cached-usd": ALL_AT_THE_DISCOUNT},
        loses={"bills-cached"},
        hint="the whole bill at the discount",
    ),
]
