"""How likely is it that a run gets to its end? Arithmetic, to hold measurements to."""

import pandas as pd


def finishes(fail_rate: float, tries: int, turns: int) -> float:
    """The share of runs that get through `turns` turns, each tried `tries` times.

    A turn fails only if all of its tries do; a run, if one of its turns does.

    >>> round(finishes(0.05, 1, 20), 4), round(finishes(0.05, 3, 20), 4)
    (0.3585, 0.9975)
    """
    return (1 - fail_rate**tries) ** turns


def odds(
    fail_rate: float = 0.05, tries: tuple[int, ...] = (1, 2, 3), most_turns: int = 60
) -> pd.DataFrame:
    """`finishes`, in percent, for runs of 0 to `most_turns` turns."""
    return pd.DataFrame(
        [
            {"tries": each, "turns": turns}
            | {"finished_percent": 100 * finishes(fail_rate, each, turns)}
            for each in tries
            for turns in range(most_turns + 1)
        ]
    )
