"""The small print under the herds: every parameter, taken from where it is set."""

from labkit.experiments.herd_tables import MODEL, SERVICE_MS
from labkit.retry import Retry


def hundred(what: str = "seed 0", clients: int = 100, retry_after: str = "none") -> str:
    """Under a picture of the herd of a hundred.

    >>> print(hundred("12 seeds"))
    virtual clock; 100 clients ask at once, capacity 3, an answer takes 18 ms; one way \
0.3 ms + Exp(2 ms), 0.3 ms of serial work a request; backoff 0.2 s doubling to 20 s; \
Retry-After: none; 12 seeds
    """
    network, settings = MODEL["network"], MODEL["settings"]
    way = f"{network.fixed_ms:g} ms + Exp({network.exponential_ms:g} ms)"
    return (
        f"virtual clock; {clients} clients ask at once, capacity {settings.capacity},"
        f" an answer takes {MODEL['service_ms']:g} ms; one way {way},"
        f" {settings.serial_ms:g} ms of serial work a request; {_backoff()};"
        f" Retry-After: {retry_after}; {what}"
    )


def twenty(what: str = "seed 0", clients: int = 20) -> str:
    """Under a picture of the herd of twenty.

    >>> print(twenty())
    virtual clock; 20 clients ask at once, capacity 3, an answer takes 126 ms; no time \
in the network; backoff 0.2 s doubling to 20 s, full jitter; Retry-After: 1 s; seed 0
    """
    return (
        f"virtual clock; {clients} clients ask at once, capacity"
        f" {MODEL['settings'].capacity}, an answer takes {SERVICE_MS:g} ms; no time in"
        f" the network; {_backoff()}, full jitter; Retry-After: 1 s; {what}"
    )


SCAN = "virtual clock; scan_archive takes 3 s, in six steps of 0.5 s"
THREE_TURNS = "virtual clock; scenario plan: three turns, two quick tools; no time \
between tokens"
TRACE = "virtual clock; scenarios destructive (n1) and slow (n2); above each turn the \
running cost"
FLAKY = "virtual clock; 5 % of the calls are answered 503; lines: (1 - 0.05^k)^n"
PRICED = (
    "virtual clock; 2 and 12 US dollars a million tokens, in and out; the child may \
take 6 turns"
)


def scan_real(stop_s: float) -> str:
    """Under a picture of a Stop into tools that block.

    >>> print(scan_real(0.3))
    real clock, loopback; a tool of 3 s, Stop after 0.3 s; the polling one looks every \
20 ms
    """
    return (
        f"real clock, loopback; a tool of 3 s, Stop after {stop_s:g} s; the polling one"
        " looks every 20 ms"
    )


def killed(scenario: str) -> str:
    """Under a picture of a killed process and the one that follows.

    >>> killed("plan")
    'virtual clock; scenario plan; the first process dies by SIGKILL'
    """
    return f"virtual clock; scenario {scenario}; the first process dies by SIGKILL"


def seeds(number: int) -> str:
    """How many runs stand behind a number.

    >>> seeds(12), seeds(1)
    ('12 seeds', '1 seed')
    """
    return f"{number} seed{'s' if number != 1 else ''}"


def _backoff() -> str:
    usual = Retry()
    return f"backoff {usual.base_s:g} s doubling to {usual.cap_s:g} s"
