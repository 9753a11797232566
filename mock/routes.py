"""Where a request goes, with which faults, and what it is told if that is nowhere."""

from urllib.parse import unquote

from mock.exchange import Exchange, Request
from mock.incoming import Refusal
from mock.plan import PARSERS, is_path_fault, path_pairs

# path -> method; each stands under /v1 too
ROUTES = {
    "/chat/completions": "POST",
    "/chat": "GET",
    "/models": "GET",
    "/stats": "GET",
    "/journal": "GET",
    "/admin/faults": "POST",
    "/admin/reset": "POST",
    "/": "GET",
}
LISTED = ", ".join(f"{method} {path}" for path, method in ROUTES.items())

FRONT = f"""\
This is mock: a chat-completions provider that misbehaves on demand.

A client's base URL is this address with /v1 behind it. Faults stand before the /v1:
/401/v1, /hang/v1, /cut=5,how=close/v1. There are: {", ".join(PARSERS)}.

/v1/chat?max_tokens=3 shows an answer (curl -N), /journal what was asked and what
came of it, /stats the totals.
"""


def route(request: Request) -> tuple[str, list[tuple[str, str]]]:
    """Method and path without the base URL, and the faults of path and query.

    >>> route(Request("GET", "/hang/v1/models?first=5"))
    ('GET /models', [('hang', '1'), ('first', '5')])
    >>> route(Request("GET", "/v1"))
    ('GET /', [])
    """
    path, faults = request.path, request.query
    first, _, rest = path[1:].partition("/")
    if rest and is_path_fault(first := unquote(first)):
        path, faults = f"/{rest}", path_pairs(first) + faults
    return f"{request.method} {path.removeprefix('/v1') or '/'}", faults


def nowhere(request: Request, where: str) -> Refusal:
    """What is said of a request that goes nowhere, with the way to somewhere."""
    path = where.partition(" ")[2]
    if path in ROUTES:
        method = ROUTES[path]
        said = f"{path} is asked with {method}, not with {request.method}"
        return Refusal(405, "method_not_allowed", said, {"allow": method})
    first, _, rest = request.path[1:].partition("/")
    if is_path_fault(unquote(first)) or rest.partition("/")[0] == "v1":
        said = (
            f"no {request.method} {request.path}: before /v1 stands a fault: a status"
            f" (/401/v1), /hang/v1, or NAME=VALUE, with commas between several"
            f" (/cut=5,how=close/v1), of: {', '.join(PARSERS)}"
        )
        return Refusal(404, "not_found", said)
    said = f"no {request.method} {request.path}; there are: {LISTED}"
    return Refusal(404, "not_found", said)


async def send_front(exchange: Exchange) -> None:
    """What this is, in words, for whoever opens the address in a browser."""
    text = FRONT.encode()
    kind = {"content-type": "text/plain; charset=utf-8"}
    exchange.start(200, kind | {"content-length": str(len(text))})
    await exchange.write(text)
    exchange.end()
