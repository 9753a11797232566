"""Typical wrong answers to exercise 14."""

from wrong_answers import Wrong

IGNORES_ARGUMENTS = """
def no_progress(steps, repeats, polls):
    counted = [s for s in steps if any(call.name not in polls for call in s)]
    last = [[(c.name, c.result) for c in step] for step in counted[-repeats:]]
    return len(last) == repeats and all(step == last[0] for step in last)
"""

IGNORES_RESULTS = """
def no_progress(steps, repeats, polls):
    counted = [s for s in steps if any(call.name not in polls for call in s)]
    last = [[(c.name, c.arguments) for c in step] for step in counted[-repeats:]]
    return len(last) == repeats and all(step == last[0] for step in last)
"""

KNOWS_NO_POLLS = """
def no_progress(steps, repeats, polls):
    last = steps[-repeats:]
    return len(last) == repeats and all(step == last[0] for step in last)
"""

COUNTS_ALL = """
def no_progress(steps, repeats, polls):
    counted = [s for s in steps if any(call.name not in polls for call in s)]
    return any(counted.count(step) >= repeats for step in counted)
"""

COMPARES_TEXTS = """
def no_progress(steps, repeats, polls):
    counted = [str(s) for s in steps if any(c.name not in polls for c in s)]
    last = counted[-repeats:]
    return len(last) == repeats and len(set(last)) == 1
"""

WRONG = [
    Wrong(
        "ignores the arguments",
        {"no-progress": IGNORES_ARGUMENTS},
        loses={"progress-moves"},
        hint="What differs from turn to turn?",
    ),
    Wrong(
        "ignores the results",
        {"no-progress": IGNORES_RESULTS},
        loses={"progress-moves"},
        hint="Compare results",
    ),
    Wrong(
        "stops what is waiting",
        {"no-progress": KNOWS_NO_POLLS},
        loses={"progress-polling"},
        hint="in perfect health",
    ),
    Wrong(
        "counts equal steps anywhere",
        {"no-progress": COUNTS_ALL},
        loses={"progress-stops"},
        hint="one after the other",
    ),
    Wrong(
        "compares steps as texts",
        {"no-progress": COMPARES_TEXTS},
        loses={"progress-moves"},
        hint="named in another order, are the same",
    ),
]
