"""Typical wrong answers to exercise 12."""

from wrong_answers import Wrong

LOOKS_BACK = """
def may_ask(budget, spent, prompt_tokens, max_tokens):
    return spent < budget
"""

FORGETS_THE_ANSWER = """
def may_ask(budget, spent, prompt_tokens, max_tokens):
    return spent + price(prompt_tokens, 0) <= budget
"""

KEEPS_A_RESERVE = """
def may_ask(budget, spent, prompt_tokens, max_tokens):
    return spent + 2 * price(prompt_tokens, max_tokens) <= budget
"""

FORGETS_THE_OTHERS = """
def reserve(account, worst):
    if account.spent + worst > account.budget:
        return False
    account.held += worst
    return True
"""

FREES_WHAT_WAS_PAID = """
def settle(account, worst, actual):
    account.held -= actual
    account.spent += actual
"""

WRONG = [
    Wrong(
        "ignores the next prompt",
        {"may-ask": LOOKS_BACK},
        loses={"budget-never"},
        hint="The next prompt is known",
    ),
    Wrong(
        "counts the prompt and not the answer",
        {"may-ask": FORGETS_THE_ANSWER},
        loses={"budget-never"},
        hint="may cost",
    ),
    Wrong(
        "stops too soon",
        {"may-ask": KEEPS_A_RESERVE},
        loses={"budget-used"},
        hint="you did not ask",
    ),
    Wrong(
        "forgets what others have under way",
        {"reserve": FORGETS_THE_OTHERS},
        loses={"budget-shared"},
        hint="Each looked before the answers",
    ),
    Wrong(
        "frees what was paid, not what was set aside",
        {"settle": FREES_WHAT_WAS_PAID},
        loses={"budget-shared"},
        hint="still set aside",
    ),
]
