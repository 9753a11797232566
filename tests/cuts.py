"""Byte streams for hypothesis: odd bodies, and any body cut at any places."""

from itertools import pairwise

from hypothesis import strategies as st

SNIPPETS = st.sampled_from(
    [b"data: ", b"data:", b"data", b"event: ", b"id: ", b"retry: ", b"12", b": c", b"x",
     b"\n", b"\r", b"\r\n", b"\n\n", b"\r\n\r\n", b"\xef\xbb\xbf", b"\0", b" ", b":",
     "\U0001f30a".encode(), "\u2028".encode(), b"\xf0\x9f", b"\xff"]
)  # fmt: skip

# Nearly event streams: enough sense to reach every rule, enough nonsense to test it.
BODIES = st.lists(SNIPPETS | st.binary(max_size=3), max_size=40).map(b"".join)


@st.composite
def cut_bodies(draw, bodies=BODIES) -> tuple[bytes, list[bytes]]:
    """A body, and the same body in pieces (some of them empty)."""
    body = draw(bodies)
    cuts = draw(st.lists(st.integers(0, len(body)), max_size=12))
    places = [0, *sorted(cuts), len(body)]
    return body, [body[start:end] for start, end in pairwise(places)]
