"""What can be asked of a provider besides answers: totals, journal, queued faults."""

from mock.exchange import Request
from mock.incoming import Refusal, bad_request, read_json
from mock.plan import BadFault, parse, plain

TIMES = 1000


def _stats(provider, request: Request) -> dict:
    return provider.books.stats()


def _journal(provider, request: Request) -> list[dict]:
    return [entry.as_dict() for entry in provider.books.journal]


def _queue_faults(provider, request: Request) -> dict:
    """`{"fault": {"status": 503}, "times": 2}`: fail the next two, then be fine."""
    asked = read_json(request.body)
    unknown = sorted(set(asked) - {"fault", "times"})
    if unknown:
        said = 'no such field; send {"fault": {...}, "times": 1}'
        raise bad_request(unknown[0], said)
    fault, times = asked.get("fault"), asked.get("times", 1)
    if not isinstance(fault, dict) or not fault:
        raise bad_request("fault", 'must be an object such as {"status": 503}')
    if type(times) is not int or not 1 <= times <= TIMES:
        raise bad_request("times", f"must be a whole number from 1 to {TIMES}")
    try:
        plan = parse((name, _as_text(value)) for name, value in fault.items())
    except BadFault as bad:
        raise Refusal(400, "bad_fault", str(bad)) from None
    provider.queued.extend([plan] * times)
    return {"queued": len(provider.queued)}


def _as_text(value) -> str:
    """A value of a JSON object as it would stand in a query."""
    if isinstance(value, float):
        return plain(value)
    return str(int(value)) if isinstance(value, bool) else str(value)


def _reset(provider, request: Request) -> dict:
    provider.reset()
    return {"reset": True}


ADMIN = {
    "GET /stats": _stats,
    "GET /journal": _journal,
    "POST /admin/faults": _queue_faults,
    "POST /admin/reset": _reset,
}
