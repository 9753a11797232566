"""Start a provider: `python -m mock hostile`."""

import argparse
import asyncio
import os
import signal
import sys
import threading
import time

try:
    from mock.kinds import KINDS
    from mock.plan import LEAVE, decimal
    from mock.provider import Provider, Settings
    from mock.sockets import HOST, SocketDoor
    from mock.tokens import VocabularyError, encoding
except ModuleNotFoundError as missing:  # most likely outside of .venv
    sys.exit(
        f"{missing.name} is not installed here: source .venv/bin/activate (if there"
        " is no .venv: make setup)"
    )

PORT = 8787
PARENT_S = 1.0  # how often a server looks whether its parent is still there


def whole(least: int, most: int):
    def parse_whole(text: str) -> int:
        if not (text.isascii() and text.isdigit() and least <= int(text) <= most):
            raise argparse.ArgumentTypeError(
                f"{text!r} is no whole number from {least} to {most}"
            )
        return int(text)

    return parse_whole


def number(least: float, most: float):
    def parse_number(text: str) -> float:
        if not least <= (value := decimal(text)) <= most:
            raise argparse.ArgumentTypeError(
                f"{text!r} is no number from {least:.9g} to {most:.9g}"
            )
        return value

    return parse_number


def or_none(parse):
    def parse_or_none(text: str):
        return None if text == "none" else parse(text)

    return parse_or_none


def seconds(text: str) -> str:
    return str(whole(0, 86_400)(text))  # a header's value


ABOUT = {
    "hostile": "the provider of chapter 14: one sentence",
    "scripted": "the provider of chapter 23: the model's name is the scenario",
}

# One option for each field of Settings
OPTIONS = {
    "capacity": (or_none(whole(1, 100_000)), "answers made at once, or none"),
    "delay_ms": (number(0, 86_400_000), "before each token"),
    "first_ms": (or_none(number(0, 86_400_000)), "before the first one, or none"),
    "retry_after": (or_none(seconds), "seconds told with a 429, or none"),
    "serial_ms": (number(0, 86_400_000), "work on each request, one at a time"),
    "requests_per_window": (or_none(whole(1, 10**9)), "a limit, or none"),
    "tokens_per_window": (or_none(whole(1, 10**9)), "a limit, or none"),
    "window_s": (number(0.001, 86_400), "how long a window is"),
    "fail_rate": (number(0, 1), "share of the requests answered 503"),
    "leave_plain": (str, "client of a plain reply gone: stop or finish"),
    "leave_stream": (str, "client of a stream gone: stop or finish"),
}


def arguments(argv=None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m mock",
        description="A chat-completions provider that misbehaves on demand.",
        epilog=f'try: curl -N "http://{HOST}:{PORT}/v1/chat?max_tokens=3"',
    )
    kinds = parser.add_subparsers(dest="kind", required=True)
    for kind, (_, usual) in KINDS.items():
        said = ABOUT[kind]
        add_options(kinds.add_parser(kind, help=said, description=said), usual)
    return parser.parse_args(argv)


def add_options(parser: argparse.ArgumentParser, usual: Settings) -> None:
    """The options of one kind, with its usual settings as defaults."""
    port = whole(0, 65_535)
    parser.add_argument("--port", type=port, default=PORT, help="0 takes a free one")
    parser.add_argument("--seed", type=whole(0, 10**9), default=0, help="of chance")
    for name, (parse, said) in OPTIONS.items():
        parser.add_argument(
            f"--{name.replace('_', '-')}",
            type=parse,
            default=getattr(usual, name),
            choices=LEAVE if name.startswith("leave") else None,
            help=f"{said} (%(default)s)",
        )
    parser.add_argument(
        "--with-parent", action="store_true", help="stop when standard input closes"
    )


class NoStart(Exception):
    """The provider cannot start: says why, and what to do."""


async def listen(asked: argparse.Namespace) -> SocketDoor:
    """A provider as asked for, at its port."""
    try:
        encoding()  # now, so that the first answer is not slower than the second
    except VocabularyError as error:
        raise NoStart(str(error)) from None
    settings = Settings(**{name: getattr(asked, name) for name in OPTIONS})
    model, _ = KINDS[asked.kind]
    door = SocketDoor(Provider(settings, model, asked.seed))
    try:
        await door.open(asked.port)
    except OSError as error:
        raise NoStart(
            f"--port {asked.port}: cannot listen on {HOST}:{asked.port} "
            f"({error.strerror}); another mock may be running there: stop it, or "
            "choose a port with --port (0 takes a free one)"
        ) from None
    return door


async def serve(asked: argparse.Namespace) -> None:
    """Listen, print the base URL, and go on until told to stop."""
    parent = os.getppid()  # it waits for the next line
    door = await listen(asked)
    print(door.url, flush=True)
    stopped = asyncio.Event()
    loop = asyncio.get_running_loop()
    if asked.with_parent:
        for over in (input_ends, lambda: parent_changes(parent)):
            stop = (over, loop.call_soon_threadsafe, stopped.set)
            threading.Thread(target=after, args=stop, daemon=True).start()
    if sys.platform != "win32":
        loop.add_signal_handler(signal.SIGTERM, stopped.set)
    await stopped.wait()
    await door.close()


def after(over, call, *args) -> None:
    over()
    call(*args)


def input_ends() -> None:
    """Wait for the end of standard input, which comes however the parent ends."""
    # Not sys.stdin: Python aborts at its exit when a thread still reads from that.
    while os.read(0, 4096):
        pass


def parent_changes(parent: int) -> None:
    """Wait until the parent is another one: a fork of the one that died (a worker of
    multiprocessing, say) may live on and hold standard input open."""
    while os.getppid() == parent:
        time.sleep(PARENT_S)


def main(argv=None) -> int:
    asked = arguments(argv)
    if asked.with_parent:  # a notebook's interrupt button signals the whole group
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        asyncio.run(serve(asked))
    except KeyboardInterrupt:
        pass
    except NoStart as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
