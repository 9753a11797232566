"""The one place that names httpx, so that its continuation is one line away."""

import httpx

__all__ = ["httpx"]
