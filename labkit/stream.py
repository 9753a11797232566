"""The stream in the caller's hands: an `async with` block and an `async for` loop."""

from collections.abc import Callable

from labkit.call import Call
from labkit.errors import CallError, LabkitError
from labkit.reply import Reply


class Stream:
    """An answer under way. Leaving the `async with` block closes its connection.

    The call begins when the block is entered: it retries until an answer opens, and
    never after that.
    """

    def __init__(self, new_call: Callable[[], Call]):
        self._new_call = new_call
        self._call: Call | None = None
        self._error: CallError | None = None

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
        """Hang up. The provider notices, and stops to generate and to bill.

        A reader that waits for a piece, in another task, is Stopped.
        """
        if self._call:
            await self._call.close()

    async def __aenter__(self) -> "Stream":
        if self._call:
            raise LabkitError("a stream is entered once: call client.stream() again")
        self._call = self._new_call()
        try:
            await self._call.open()
        except CallError as error:
            self._error = error
            raise
        return self

    async def __aexit__(self, *exc) -> None:
        await self.aclose()

    def __aiter__(self) -> "Stream":
        return self

    async def __anext__(self) -> str:
        """The next content that is not empty. Raises a CallError where it breaks off,
        and again for whoever goes on reading; Stopped if the stream was left before.

        So a stream without a proper end never ends like one that has it.
        """
        if self._call is None:
            raise LabkitError("use `async with client.stream(...) as stream`")
        if self._call.reply:
            raise StopAsyncIteration
        if self._error:
            raise self._error
        try:
            piece = await self._call.piece()
        except CallError as error:
            self._error = error
            raise
        if not piece:
            raise StopAsyncIteration
        return piece
