"""The tables that count herds: chapter 14, jitter and Retry-After."""

import pandas as pd

from labkit.experiments.herd import Network, herd, herd_totals
from labkit.experiments.seeds import medians, summary, sweep
from mock.provider import Settings

COLUMNS = [
    "clients",
    "requests",
    "rejected",
    "answers",
    "identical",
    "wall_ms",
    "retries",
]
COUNTED = ["requests", "wall_s", "peak_50ms"]

# Under this model the chapter's times come out: an answer takes 18 ms; a message
# travels 0.3 ms plus an exponential 2 ms; the provider does 0.3 ms of work on each
# request, one at a time. The chapter prints none of the three: they are fitted.
MODEL = {
    "service_ms": 18.0,
    "network": Network(fixed_ms=0.3, exponential_ms=2.0),
    "settings": Settings(serial_ms=0.3),
}
# The herds of twenty fit answers of 126 ms: two of the chapter's tokens.
SERVICE_MS = 126.0


def herd20(
    clients: int = 20,
    service_ms: float = SERVICE_MS,
    seeds: int = 40,
    clock: str = "virtual",
) -> pd.DataFrame:
    """Twenty clients, full jitter over a Retry-After of 1 s: many runs, and one."""
    case = {"clients": clients, "service_ms": service_ms, "clock": clock}
    runs = sweep(herd_totals, [case], seeds, "herd of 20")
    rows = summary(runs, ["requests", "rejected", "wall_ms"])
    rows["clients"] = clients
    rows["answers"] = int(runs.answers.min())
    rows["identical"] = bool(runs.identical.all())
    one = runs.head(1).assign(summary="one run")
    return pd.concat([rows, one])[["summary", *COLUMNS]].reset_index(drop=True)


def gate(
    clients: int = 20,
    width: int = 3,
    service_ms: float = SERVICE_MS,
    clock: str = "virtual",
) -> pd.DataFrame:
    """The same twenty behind one gate as wide as the provider's capacity."""
    run = herd_totals(
        clients=clients, service_ms=service_ms, gates=(width,), clock=clock
    )
    return pd.DataFrame([run])[COLUMNS]


def gate_width(
    clients: int = 20,
    service_ms: float = SERVICE_MS,
    widths: tuple[int, ...] = (1, 2, 3, 4, 5, 8, 12, 20),
    processes: tuple[int, ...] = (2, 4),
    seeds: int = 10,
    clock: str = "virtual",
) -> pd.DataFrame:
    """Gates from too narrow to none; and one gate of three in each of P processes."""
    shapes = [(width, 1) for width in widths] + [(3, count) for count in processes]
    common = {"clients": clients, "service_ms": service_ms, "clock": clock}
    cases = [common | {"gates": (width,) * count} for width, count in shapes]
    runs = sweep(herd_totals, cases, seeds, "gates")
    rows = [
        {"width": width, "processes": count, "clients": clients}
        | medians(runs[runs.case == case], ["requests", "rejected", "wall_ms"])
        for case, (width, count) in enumerate(shapes)
    ]
    return pd.DataFrame(rows)


def jitter(
    clients: int = 100,
    policies: tuple[str, ...] = ("exponential", "full"),
    seeds: int = 40,
    clock: str = "virtual",
) -> pd.DataFrame:
    """A hundred clients, no Retry-After: exponential backoff, bare and with jitter.

    The median and quantiles of each policy, then one row a seed. `share_of_naive` is
    the requests, as a share of the median of the bare policy, which comes first.
    """
    common = MODEL | {"clients": clients, "retry_after": None, "clock": clock}
    cases = [common | {"strategy": policy} for policy in policies]
    runs = sweep(herd_totals, cases, seeds, "jitter")
    naive = runs[runs.case == 0].requests.median()
    if policies[0] != "exponential":
        naive = float("nan")
    frames = []
    for case, policy in enumerate(policies):
        own = runs[runs.case == case]
        rows = pd.concat([summary(own, COUNTED), own[["seed", *COUNTED]]])
        frames.append(rows.assign(policy=policy))
    table = pd.concat(frames, ignore_index=True)
    table["share_of_naive"] = (table.requests / naive).round(6)
    columns = ["policy", "summary", "seed", *COUNTED, "share_of_naive"]
    return table[columns].astype({"seed": "Int64"})


def retry_after(
    clients: int = 20,
    service_ms: float = SERVICE_MS,
    waits: int = 5,
    clock: str = "virtual",
) -> pd.DataFrame:
    """The unluckiest client of a herd of twenty, attempt by attempt.

    The herd is the first one, from seed 0 on, whose last client to be served waited
    `waits` times and only the last time for longer than Retry-After, as the
    chapter's did. Real herds are slow, so there it is simply the herd of seed 0.
    """
    for seed in range(1000):
        requests = herd(clients, service_ms=service_ms, seed=seed, clock=clock)
        last = requests.client[requests.answered_s.idxmax()]
        trace = requests[requests.client == last]
        if clock == "real" or _like_the_chapters(list(trace.slept_s), waits):
            break
    times = trace[["t_s", "floor_s", "draw_s", "slept_s"]].mul(1000).round(3)
    times.columns = ["t_ms", "floor_ms", "draw_ms", "slept_ms"]
    table = pd.concat([trace[["attempt", "status"]], times], axis=1).assign(seed=seed)
    order = ["t_ms", "attempt", "status", "floor_ms", "draw_ms", "slept_ms", "seed"]
    return table[order].reset_index(drop=True)


def _like_the_chapters(slept_s: list[float], waits: int) -> bool:
    """Only Retry-After for all waits but the last, then a longer draw, then served."""
    if len(slept_s) != waits + 1:
        return False
    *early, late, _ = slept_s
    return max(early) <= 1.0 < late


# A provider that refuses by a window, with a header that tells the truth: so many
# requests in two seconds, however many are in flight.
WINDOW = Settings(capacity=None, requests_per_window=30, window_s=2)


def retry_after_herd(
    clients: int = 100, seeds: int = 10, clock: str = "virtual"
) -> pd.DataFrame:
    """What to do with Retry-After in a herd of a hundred: three rules, two limiters.

    limiter: `capacity` refuses while three requests are in flight, and says 1 s
    whatever happens; `window` serves 30 requests in each two seconds, and says when
    the next two begin. All numbers are medians over `runs` seeds.
    """
    limiters = {"capacity": MODEL, "window": MODEL | {"settings": WINDOW}}
    shapes = [(name, rule) for name in limiters for rule in ("max", "plus", "ignore")]
    common = {"clients": clients, "clock": clock}
    cases = [common | limiters[name] | {"floor": rule} for name, rule in shapes]
    runs = sweep(herd_totals, cases, seeds, "Retry-After")
    rows = [
        {"limiter": name, "floor": rule, "clients": clients}
        | medians(runs[runs.case == case], COUNTED)
        for case, (name, rule) in enumerate(shapes)
    ]
    return pd.DataFrame(rows)
