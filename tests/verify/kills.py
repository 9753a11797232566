"""SIGKILL at random points of a run, and at random instants, again and again; the last
life finishes the run as if nothing had happened. The stage is that of tests/test_kill.
"""

import random
import tempfile
import time
from pathlib import Path

from labkit.store import RunStore
from tests.test_kill import Stage, check, same
from tests.verify.section import Section, Tally, cases

NAME = "kills"
MOST_LIVES = 60  # after that the last one is left alone


def run(budget_s: float, seed: int) -> Section:
    points = Tally("kills between two effects, at random points")
    instants = Tally("kills at a random instant")
    runs = Tally("runs that were killed several times, and ended as if they had not")
    stage = Stage()
    try:
        with tempfile.TemporaryDirectory() as folder:
            scene = Scene(stage, Path(folder))
            for case, chance in cases(budget_s, seed):
                with runs.attempt(case):
                    scene.play(case, chance, points, instants)
    finally:
        stage.close()
    return Section(NAME, [points, instants, runs])


class Scene:
    """One run undisturbed; all others must come to the same."""

    def __init__(self, stage: Stage, folder: Path):
        self._stage, self._folder = stage, folder
        home = folder / "whole"
        for name in ("warm", "whole"):  # the first one is slower
            began_s = time.monotonic()
            assert stage.live(folder / name, name, None)
        self._takes_s = time.monotonic() - began_s
        self._points = int((home / "points").read_text())
        self._whole = RunStore(home).load("whole")

    def play(
        self, case: str, chance: random.Random, points: Tally, instants: Tally
    ) -> None:
        """Lives of one run, each killed somewhere, until one comes to the end."""
        name = case.replace(" ", "-").replace(",", "")
        home, ended = self._folder / name, False
        for _ in range(MOST_LIVES):
            # Early rather than late: what is left of a run gets shorter with each life.
            share = chance.random() ** 2
            if chance.random() < 0.5:
                tally, death = points, {"kill_at": 1 + int(share * self._points)}
            else:
                after_s = share * self._takes_s
                tally, death = instants, {"kill_at": None, "kill_after_s": after_s}
            ended = self._stage.live(home, name, **death)
            if ended:
                break
            with tally.attempt(f"{case}, {death}"):
                readable(home, name)
        if not ended:
            assert self._stage.live(home, name, None), "the last life did not end"
        check(self._stage, home, name)
        same(RunStore(home).load(name), self._whole)


def readable(home: Path, run_id: str) -> None:
    """After each kill: what is on the disk can be read, if there is anything yet."""
    store = RunStore(home)
    if store.path(run_id).exists():
        store.load(run_id)
