"""The same experiment under many seeds, on all cores, with a progress bar."""

import multiprocessing
import os
import sys
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from functools import partial

import pandas as pd
from tqdm import tqdm

INLINE = 8  # fewer runs than this are not worth a pool of processes
CORES = os.cpu_count() or 1
QUANTILES = {"p05": 0.05, "median": 0.5, "p95": 0.95}

_started: list[ProcessPoolExecutor] = []


def sweep(
    function: Callable[..., dict], cases: list[dict], seeds: int, what: str
) -> pd.DataFrame:
    """One row a run: each case under seeds 0, 1, 2, ... in order.

    `function(seed=..., **case)` returns a dict of columns. It must be importable by
    name, since each core runs it in a process of its own. The column `case` holds
    the number of the case.
    """
    asked = [(n, seed) for n in range(len(cases)) for seed in range(seeds)]
    run = partial(_one, function, cases)
    if len(asked) <= INLINE or CORES == 1:
        return pd.DataFrame([run(each) for each in asked])
    with workers() as pool:
        done = pool.map(run, asked, chunksize=max(1, len(asked) // (16 * CORES)))
        # Plain text also in a notebook: of a bar that is a widget, a saved page would
        # keep the first moment. A committed page sets the variable, which tqdm itself
        # would ignore beside an argument.
        off = bool(os.environ.get("TQDM_DISABLE")) or not somebody_looks()
        # A notebook colours what is written to standard error, even when it is gone.
        file = sys.stdout if in_a_kernel() else sys.stderr
        shown = {"leave": False, "delay": 2, "disable": off, "file": file}
        return pd.DataFrame(list(tqdm(done, what, len(asked), **shown)))


def somebody_looks() -> bool:
    """Is there a terminal or a notebook, and not a pipe or a log?"""
    return sys.stderr.isatty() or in_a_kernel()


def in_a_kernel() -> bool:
    """Does this run in a notebook?"""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return hasattr(shell, "kernel")


@contextmanager
def workers():
    """A process for each core. Inside another `workers()` block: those of that one,
    so that several sweeps start their processes once."""
    if _started:
        yield _started[0]
        return
    # spawn, also on Linux: a fork of a process with threads (a kernel) may hang
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(CORES, mp_context=context) as pool:
        _started.append(pool)
        try:
            yield pool
        finally:
            _started.clear()


def _one(function, cases: list[dict], asked: tuple[int, int]) -> dict:
    case, seed = asked
    return {"case": case, "seed": seed} | function(seed=seed, **cases[case])


def summary(runs: pd.DataFrame, columns: list[str]) -> pd.DataFrame:
    """The median and the 5 % and 95 % quantiles of `columns`, a row each."""
    rows = [
        {"summary": name} | {c: round(float(runs[c].quantile(q)), 6) for c in columns}
        for name, q in QUANTILES.items()
    ]
    return pd.DataFrame(rows)


def medians(runs: pd.DataFrame, columns: list[str]) -> dict:
    """The median of each column, and over how many runs."""
    return {c: round(float(runs[c].median()), 6) for c in columns} | {"runs": len(runs)}
