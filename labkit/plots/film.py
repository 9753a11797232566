"""`python -m labkit.plots.film`: the herd as a short film, and its last picture.

Writes docs/herd.gif and docs/herd.png. The same bytes each time, for one version of
matplotlib and pillow: the runs are seeded, on the virtual clock.
"""

import argparse
from io import BytesIO
from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from PIL import Image

from labkit.experiments import herd as experiment
from labkit.experiments.herd_tables import MODEL
from labkit.plots.herd import DOT, RING, TITLES, say_total, time_axis
from labkit.plots.notes import hundred
from labkit.plots.style import GREY, clock_note, figure

FOLDER = Path(__file__).resolve().parents[2] / "docs"
FRAMES, STEP_MS = 84, 100
FIRST_MS, LAST_MS = 700, 2600  # the first picture is looked at, and the last
COLOURS = 32
NEARLY_WHITE = 247  # of 255, in each of the three parts
SEED = 0


def herds(seed: int = SEED) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The same hundred clients without jitter and with full jitter."""
    common = MODEL | {"clients": 100, "retry_after": None, "seed": seed}
    return (
        experiment.herd(strategy="exponential", **common),
        experiment.herd(strategy="full", **common),
    )


class Film:
    """The herd picture, drawn up to a moment: `at` moves it, `last` is all of it."""

    def __init__(self, naive: pd.DataFrame, jitter: pd.DataFrame):
        self.end_s = float(max(naive.answered_s.max(), jitter.answered_s.max()))
        self.figure, axes = figure(2, height_in=4.6, sharex=True)
        self._panels = [
            _Panel(ax, rows, title)
            for ax, rows, title in zip(axes, (naive, jitter), TITLES, strict=True)
        ]
        time_axis(axes[1], self.end_s)
        axes[1].legend(
            loc="center right", markerscale=1.8, frameon=True, framealpha=1,
            edgecolor="white",
        )  # fmt: skip
        clock_note(axes[1], hundred(f"seed {SEED}"))

    def at(self, time_s: float) -> Figure:
        """The picture at this moment of the herd, in seconds."""
        for panel in self._panels:
            panel.at(time_s)
        return self.figure

    def last(self) -> Figure:
        """The whole picture, as it is printed."""
        for panel in self._panels:
            panel.at(self.end_s)
            panel.over()
        return self.figure

    def moments(self, frames: int = FRAMES) -> list[float]:
        """Moments that move evenly along the axis, so time runs ever faster."""
        scale = self.figure.axes[1].xaxis.get_transform()
        ends = scale.transform(np.array([0.0, self.end_s]))
        even = np.linspace(*ends, frames)
        return [float(moment) for moment in scale.inverted().transform(even)]


class _Panel:
    def __init__(self, ax, rows: pd.DataFrame, title: str):
        order = rows.groupby("client").answered_s.max().rank(method="first")
        self._ax, self._rows = ax, rows.assign(height=rows.client.map(order))
        (self._rings,) = ax.plot([], [], label="429: refused", **RING)
        (self._dots,) = ax.plot([], [], label="200: answered", **DOT)
        self._cursor = ax.axvline(0, color=GREY, linewidth=1)
        self._said = ax.text(
            0.995, 0.06, "", transform=ax.transAxes, ha="right", fontsize=10,
            bbox={"facecolor": "white", "edgecolor": "none", "pad": 0.5},
        )  # fmt: skip
        ax.set_title(title)
        ax.set_ylabel("clients, in order\nof their answers")
        ax.set_ylim(0, len(order) + 1)

    def at(self, time_s: float) -> None:
        # A hair more, so that what was sent at 0 or at the very end is seen.
        rows = self._rows[self._rows.t_s <= time_s + 1e-9]
        refused = rows.status == 429
        self._rings.set_data(rows.t_s[refused], rows.height[refused])
        self._dots.set_data(rows.t_s[~refused], rows.height[~refused])
        self._cursor.set_xdata([time_s, time_s])
        answered = int((self._rows.answered_s <= time_s + 1e-9).sum())
        self._said.set_text(
            f"after {time_s:.1f} s: {len(rows)} requests,\n{answered} clients answered"
        )

    def over(self) -> None:
        self._cursor.set_visible(False)
        self._said.set_visible(False)
        say_total(self._ax, self._rows)


def write(folder: Path = FOLDER, frames: int = FRAMES) -> tuple[Path, Path]:
    """Write herd.gif and herd.png into a folder; returns both paths."""
    folder.mkdir(parents=True, exist_ok=True)
    film = Film(*herds())
    pictures = [_picture(film.at(moment)) for moment in film.moments(frames)]
    still = film.last()
    pictures.append(_picture(still))
    # One palette, from the last picture, which shows everything: no flicker.
    palette = pictures[-1].quantize(COLOURS, dither=Image.Dither.NONE)
    palette.putpalette(_pure_white(palette.getpalette()))
    few = [p.quantize(palette=palette, dither=Image.Dither.NONE) for p in pictures]
    lasts = [FIRST_MS] + [STEP_MS] * (len(few) - 2) + [LAST_MS]
    gif, png = folder / "herd.gif", folder / "herd.png"
    few[0].save(gif, save_all=True, append_images=few[1:], duration=lasts, loop=0)
    png.write_bytes(still.png())
    return gif, png


def _pure_white(palette: list[int]) -> list[int]:
    """The quantizer mixes a little grey into the paper: take it out again."""
    colours = [palette[at : at + 3] for at in range(0, len(palette), 3)]
    return [
        part
        for colour in colours
        for part in (colour if min(colour) < NEARLY_WHITE else [255] * 3)
    ]


def _picture(drawn: Figure) -> Image.Image:
    return Image.open(BytesIO(drawn.png(scale=1))).convert("RGB")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m labkit.plots.film")
    parser.add_argument("--out", type=Path, default=FOLDER, metavar="DIR")
    for path in write(parser.parse_args().out):
        print(f"{path.name}: {path.stat().st_size / 1000:.0f} kB")


if __name__ == "__main__":
    main()
