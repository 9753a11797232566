"""The stream in the caller's hands: an `async with` block and an `async for` loop."""

from collections.abc import Callable

from labkit.call import Call
from labkit.errors import LabkitError
from labkit.reply import Reply


class Stream:
    """An answer under way. Leaving the `async with` block closes its connection.

    The call begins when the block is entered: it retries until an answer opens, and
    never after that.
    """

    def __init__(self, new_call: Callable[[], Call]):
        self._new_call = new_call
        self._call: Call | None = None
        self._over = False

    @property
    def text(self) -> str:
        """All that has come so far: fit to show, not to save."""
        return self._call.text if self._call else ""

    @property
    def reply(self) -> Reply:
        """The whole answer, once the stream has been read to its end."""
        if self._call is None or self._call.reply is None:
            raise LabkitError("no reply yet: read the stream to its end first")
        return self._call.reply

    async def aclose(self) -> None:
        """Hang up. The provider notices, and stops to generate and to bill."""
        self._over = True
        if self._call:
            await self._call.close()

    async def __aenter__(self) -> "Stream":
        self._call = self._new_call()
        await self._call.open()
        return self

    async def __aexit__(self, *exc) -> None:
        await self.aclose()

    def __aiter__(self) -> "Stream":
        return self

    async def __anext__(self) -> str:
        """The next content that is not empty. Raises a CallError where it breaks off:
        a stream without a proper end never ends like one that has it."""
        if self._call is None:
            raise LabkitError("use `async with client.stream(...) as stream`")
        if self._over:
            raise StopAsyncIteration
        self._over = True  # unless a piece comes
        piece = await self._call.piece()
        if not piece:
            raise StopAsyncIteration
        self._over = False
        return piece
