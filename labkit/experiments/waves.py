"""Why a herd without jitter comes in waves (chapter 14, jitter): the rows, counted.

All clients start together and double the same wait, so each failure sends all of
them to the same next moment. `waves` says when these moments are; `by_wave` counts
what came of them; `arrivals` counts requests in windows of equal length.
"""

from itertools import accumulate

import pandas as pd

from labkit.backoff import exponential
from labkit.experiments.herd import WINDOW_S


def waves(count: int = 28, base_s: float = 0.2, cap_s: float = 20.0) -> pd.DataFrame:
    """When wave 0, 1, 2, ... of a herd without jitter begins, in seconds.

    >>> list(waves(10).starts_s)
    [0.0, 0.2, 0.6, 1.4, 3.0, 6.2, 12.6, 25.4, 45.4, 65.4]
    """
    waits = [exponential(n, None, base_s, cap_s) for n in range(count - 1)]
    starts = [round(start, 6) for start in accumulate(waits, initial=0.0)]
    return pd.DataFrame({"wave": range(count), "starts_s": starts})


def by_wave(requests: pd.DataFrame) -> pd.DataFrame:
    """A herd without jitter, wave by wave: the number of a try is that of its wave.

    Columns: wave, starts_s (by the rule), sent, served, and spread_ms: from the
    first request of the wave to the last.
    """
    start = waves(int(requests.attempt.max()) + 1).starts_s
    rows = []
    for wave, own in requests.groupby("attempt"):
        rows.append(
            {
                "wave": wave,
                "starts_s": start[wave],
                "sent": len(own),
                "served": int((own.status == 200).sum()),
                "spread_ms": round(float(own.t_s.max() - own.t_s.min()) * 1000, 3),
            }
        )
    return pd.DataFrame(rows)


def wave_of(wall_s: float) -> int:
    """The last wave, counted from 0, that had begun when a herd's last answer came.

    >>> wave_of(225.6), wave_of(65.6)
    (17, 9)
    """
    starts = waves(60).starts_s
    return int((starts <= wall_s).sum()) - 1


def arrivals(requests: pd.DataFrame, window_s: float = WINDOW_S) -> pd.DataFrame:
    """Requests sent in each window from 0 on; windows without any are left out.

    Columns: from_s, requests.
    """
    window = (requests.t_s / window_s + 1e-9).astype(int)
    counted = window.value_counts().sort_index()
    from_s = [round(number * window_s, 6) for number in counted.index]
    return pd.DataFrame({"from_s": from_s, "requests": counted.to_numpy()})
