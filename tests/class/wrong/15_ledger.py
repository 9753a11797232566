"""Typical wrong answers to exercise 15."""

from wrong_answers import Wrong

MARKS_AFTERWARDS = """
def pay(world, order, cents):
    receipt = world.read(order)
    if receipt is None:
        receipt = world.charge(order, cents)
        world.write(order, receipt)
    return receipt
"""

MARKS_BEFORE = """
def pay(world, order, cents):
    entry = world.read(order)
    if entry is not None:
        return entry
    world.write(order, "begun")
    receipt = world.charge(order, cents)
    world.write(order, receipt)
    return receipt
"""

ALWAYS_ASKS = """
def pay(world, order, cents):
    return world.find(order) or world.charge(order, cents)
"""

BY_AMOUNT = """
def pay(world, order, cents):
    entry = world.read(str(cents))
    if entry and "receipt" in entry:
        return entry["receipt"]
    receipt = world.find(order) if entry else None
    if receipt is None:
        world.write(str(cents), {"begun": order})
        receipt = world.charge(order, cents)
    world.write(str(cents), {"receipt": receipt})
    return receipt
"""

BLIND_AND_BOLD = """
def pay_blind(world, order, cents):
    entry = world.read(order)
    if entry and "receipt" in entry:
        return entry["receipt"]
    world.write(order, {"begun": cents})
    receipt = world.charge(order, cents)
    world.write(order, {"receipt": receipt})
    return receipt
"""

ALWAYS_RAN = """
def resolve(world, order, receipt):
    world.write(order, {"receipt": receipt})
"""

FORGETS_THE_SECOND_LIFE = """
def pay_blind(world, order, cents):
    entry = world.read(order)
    if entry and "receipt" in entry:
        return entry["receipt"]
    if entry and "begun" in entry:
        raise InDoubt(order)
    if not entry:
        world.write(order, {"begun": cents})
    receipt = world.charge(order, cents)
    world.write(order, {"receipt": receipt})
    return receipt
"""

NOT_CHARGED = """
def resolve(world, order, receipt):
    found = {"receipt": receipt} if receipt else {"free": True}
    world.write(order, found)
"""

ALWAYS_IN_DOUBT = """
def pay_blind(world, order, cents):
    entry = world.read(order)
    if entry and "receipt" in entry:
        return entry["receipt"]
    world.write(order, {"begun": cents})
    raise InDoubt(order)
"""

WRONG = [
    Wrong(
        "marks only afterwards",
        {"pay": MARKS_AFTERWARDS},
        loses={"ledger-kill"},
        hint="Charged 2 times: charge, KILLED, charge, write",
    ),
    Wrong(
        "takes begun for done",
        {"pay": MARKS_BEFORE},
        loses={"ledger-kill"},
        hint="Never charged: write, KILLED",
    ),
    Wrong(
        "asks the bank each time, without a ledger",
        {"pay": ALWAYS_ASKS},
        loses={"ledger-once"},
        hint="takes a minute",
    ),
    Wrong(
        "tells orders apart by their amounts",
        {"pay": BY_AMOUNT},
        loses={"ledger-once"},
        hint="Another order is another charge",
    ),
    Wrong(
        "charges again when in doubt",
        {"pay-blind": BLIND_AND_BOLD},
        loses={"ledger-doubt"},
        hint="Charged twice: write, charge, KILLED",
    ),
    Wrong(
        "a person's no is taken for done",
        {"resolve": ALWAYS_RAN},
        loses={"ledger-doubt"},
        hint="PERSON FOUND no charge",
    ),
    Wrong(
        "begins a second time without a note",
        {"pay-blind": FORGETS_THE_SECOND_LIFE, "resolve": NOT_CHARGED},
        loses={"ledger-doubt"},
        hint="had begun to charge",
    ),
    Wrong(
        "is always in doubt",
        {"pay-blind": ALWAYS_IN_DOUBT},
        loses={"ledger-doubt"},
        hint="nobody was killed: what is in doubt?",
    ),
]
