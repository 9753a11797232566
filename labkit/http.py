"""The one place that names httpx, so that its continuation is one line away."""

import contextlib
import importlib

import httpx

__all__ = ["httpx"]

# httpx would import these at its first request, which then pays for them with 20 to
# 40 ms of its time to first token.
for _name in ("httpcore", "anyio._backends._asyncio"):
    with contextlib.suppress(ImportError):
        importlib.import_module(_name)
