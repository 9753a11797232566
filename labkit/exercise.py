"""What the exercises share: chance that a teacher can change and nobody can look up.

The hidden tests of an exercise ask about variants: other codes, other dates, other
cuts. Since the solutions are public, a variant is drawn and not written down. The
same seed gives the same variants; a teacher sets another one before grading:

    LABKIT_CLASS_SEED=my-own-words python -m nbgrader autograde 04_retry_after
"""

import os
import random

SEED = "LABKIT_CLASS_SEED"
DEFAULT_SEED = "2026"


def rng(name: str) -> random.Random:
    """Chance for the variants of one exercise. `name`: the exercise's, or a test's.

    Drawn from the environment's LABKIT_CLASS_SEED ("2026" if it is not set or empty)
    and the name, so two exercises never share their draws.

    >>> rng("full-jitter").random() == rng("full-jitter").random()
    True
    >>> rng("full-jitter").random() == rng("budget").random()
    False
    """
    seed = os.environ.get(SEED) or DEFAULT_SEED
    return random.Random(f"{seed}/{name}")
