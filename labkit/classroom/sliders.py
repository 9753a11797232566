"""The herd under the reader's own hands: `labkit.playground()` in a notebook.

Controls on top, and under them the picture, which is there without controls as well:
on a page that is only looked at, or where ipywidgets is not installed. A control that
is let go of runs the herd anew on the virtual clock, and draws over the picture.
"""

from dataclasses import dataclass, replace

import pandas as pd

from labkit.errors import ConfigError
from labkit.experiments.herd import herd
from labkit.experiments.herd_tables import MODEL
from labkit.experiments.seeds import in_a_kernel
from labkit.limits import is_number
from labkit.plots.herd import one
from labkit.plots.style import Picture

# What the choice says -> the strategy of `labkit.backoff`. Without any pause a herd
# asks without end, so "none" is not among them.
JITTER = {
    "none": "exponential",
    "full": "full",
    "equal": "equal",
    "decorrelated": "decorrelated",
}

# From, to, step. So that each herd is drawn within about a second.
CLIENTS, CAPACITY = (5, 100, 5), (2, 20, 1)
BASE_S, CAP_S = (0.05, 1.0, 0.05), (1.0, 60.0, 1.0)


@dataclass(frozen=True)
class Herd:
    """What can be moved. Raises ConfigError for a field beyond its range."""

    clients: int = 100
    capacity: int = 3
    base_s: float = 0.2
    cap_s: float = 20.0
    jitter: str = "none"

    def __post_init__(self):
        for field, (low, high, _) in {
            "clients": CLIENTS, "capacity": CAPACITY, "base_s": BASE_S, "cap_s": CAP_S,
        }.items():  # fmt: skip
            value = getattr(self, field)
            whole = field in ("base_s", "cap_s") or type(value) is int
            if not (is_number(value) and whole and low <= value <= high):
                said = f"{field} is {value!r}: give a number from {low:g} to {high:g}"
                raise ConfigError(said, field=field)
        if self.jitter not in JITTER:
            said = f"jitter is {self.jitter!r}: choose one of {', '.join(JITTER)}"
            raise ConfigError(said, field="jitter")

    def requests(self) -> pd.DataFrame:
        """The herd, a row a request: virtual clock, seed 0."""
        settings = replace(MODEL["settings"], capacity=self.capacity)
        return herd(
            self.clients, strategy=JITTER[self.jitter], retry_after=None,
            base_s=self.base_s, cap_s=self.cap_s, **MODEL | {"settings": settings},
        )  # fmt: skip

    def picture(self) -> Picture:
        rows = self.requests()
        backoff = f"backoff {self.base_s:g} s doubling to {self.cap_s:g} s"
        if self.jitter == "decorrelated":
            backoff = f"backoff from {self.base_s:g} s to {self.cap_s:g} s"
        note = (
            f"virtual clock; {self.clients} clients ask at once, capacity"
            f" {self.capacity}, an answer takes {MODEL['service_ms']:g} ms; {backoff},"
            f" jitter: {self.jitter}; Retry-After: none; seed 0"
        )
        title = f"{len(rows)} requests for {self.clients} answers"
        return one(rows, title, until_s=None, capacity=self.capacity, note=note)


def playground(**settings) -> None:
    """Show a herd, and in a notebook the controls that change it.

    settings: those to begin with, as in `playground(clients=50, jitter="full")`. The
    fields of `Herd`: clients, capacity, base_s, cap_s, and jitter ("none", "full",
    "equal" or "decorrelated").

    Raises ConfigError for a setting that is unknown or beyond its range.
    """
    from IPython.display import display

    unknown = settings.keys() - Herd.__dataclass_fields__.keys()
    if unknown:
        name = min(unknown)
        known = ", ".join(Herd.__dataclass_fields__)
        raise ConfigError(f"{name} is unknown: there are {known}", field=name)
    start = Herd(**settings)
    controls = make_controls(start)
    if not controls:
        display(start.picture())
        return
    from ipywidgets import VBox

    display(VBox(list(controls.values())))
    data, metadata = start.picture().bundle()
    # An output of its own, and not one inside the controls: a page keeps it.
    shown = display(data, metadata=metadata, raw=True, display_id=True)
    for each in controls.values():
        each.observe(lambda change: redraw(controls, shown), names="value")


def redraw(controls: dict, shown) -> None:
    """Draw the herd that the controls describe over the one that is shown."""
    now = Herd(**{field: each.value for field, each in controls.items()})
    data, metadata = now.picture().bundle()
    shown.update(data, metadata=metadata, raw=True)


def make_controls(start: Herd) -> dict:
    """A control for each field; none where nobody could move it."""
    if not in_a_kernel():
        return {}
    try:
        import ipywidgets
    except ImportError:
        return {}
    # Only when it is let go of: else each step on the way would be a herd.
    common = {"continuous_update": False, "style": {"description_width": "9em"}}
    common["layout"] = {"width": "32em"}

    def slider(kind, field: str, limits: tuple, description: str):
        low, high, step = limits
        return kind(
            value=getattr(start, field), min=low, max=high, step=step,
            description=description, **common,
        )  # fmt: skip

    whole, real = ipywidgets.IntSlider, ipywidgets.FloatSlider
    choice = {key: common[key] for key in ("style", "layout")}
    return {
        "clients": slider(whole, "clients", CLIENTS, "clients"),
        "capacity": slider(whole, "capacity", CAPACITY, "capacity"),
        "base_s": slider(real, "base_s", BASE_S, "base (s)"),
        "cap_s": slider(real, "cap_s", CAP_S, "cap (s)"),
        "jitter": ipywidgets.Dropdown(
            options=list(JITTER), value=start.jitter, description="jitter", **choice
        ),
    }
