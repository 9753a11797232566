"""`python -m mock`, and the helper that starts it for notebooks and tests."""

import os
import re
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from labkit import server as helper
from labkit.http import httpx
from labkit.server import ServerError, start_server
from mock.__main__ import OPTIONS, arguments
from mock.provider import Settings

ROOT = Path(__file__).resolve().parent.parent
MOCK = [sys.executable, "-m", "mock", "hostile"]
posix = pytest.mark.skipif(sys.platform == "win32", reason="POSIX signals")


def alive(url: str) -> bool:
    port = int(re.search(r":(\d+)/", url)[1])
    try:
        socket.create_connection(("127.0.0.1", port), timeout=1).close()
    except OSError:
        return False
    return True


def gone(url: str, within_s: float = 3.0) -> bool:
    until = time.monotonic() + within_s
    while alive(url) and time.monotonic() < until:
        time.sleep(0.01)
    return not alive(url)


@pytest.fixture(scope="module")
def server():
    with start_server("hostile", delay_ms=0) as running:
        yield running


# The helper


def test_the_short_form_works_with_curl(server):
    said = httpx.get(f"{server.url}/chat?max_tokens=3", trust_env=False).text
    assert said.count("data: ") == 5 and said.endswith("data: [DONE]\n\n")
    assert '"finish_reason":"length"' in said


def test_the_helper_asks_and_queues_and_forgets(server):
    server.forget()
    server.queue(2, status=503, retry_after=1)
    url = f"{server.url}/chat"
    codes = [httpx.get(url, trust_env=False).status_code for _ in range(3)]
    assert codes == [503, 503, 200]
    assert server.stats()["statuses"] == {"200": 1, "503": 2}
    assert [entry["plan"] for entry in server.journal()] == [
        "status=503&retry_after=1", "status=503&retry_after=1", "",
    ]  # fmt: skip
    server.forget()
    assert server.stats()["requests"] == 0 and server.journal() == []


def test_a_fault_in_the_path(server):
    for fault, code in (("401", 401), ("status=402", 402), ("cut=x", 400)):
        reply = httpx.get(f"{server.at(fault)}/chat", trust_env=False)
        assert reply.status_code == code


def test_a_bad_fault_is_told_by_the_helper(server):
    with pytest.raises(ServerError, match="cut: 'five' is no whole number"):
        server.queue(cut="five")
    with pytest.raises(ServerError, match="times"):
        server.queue(0, status=503)


@pytest.mark.parametrize(
    "kind, settings, said",
    [
        ("hostil", {}, "invalid choice: 'hostil'"),
        ("hostile", {"capacity": 0}, "--capacity: '0' is no whole number from 1"),
        ("hostile", {"capacty": 3}, "unrecognized arguments: --capacty=3"),
    ],
)
def test_a_start_that_fails_says_why(kind, settings, said):
    with pytest.raises(ServerError, match=re.escape(said)):
        start_server(kind, **settings)


def test_the_helper_ends_one_and_all():
    one, two = start_server(), start_server(capacity="none", seed=5)
    assert alive(one.url) and alive(two.url) and one.url != two.url
    one.close()
    one.close()
    assert not alive(one.url) and alive(two.url)
    with pytest.raises(ServerError, match="does not answer; start another"):
        one.stats()
    helper.reset()
    assert not alive(two.url)
    helper.reset()


@posix
def test_a_server_ended_from_outside_can_still_be_closed():
    running = start_server()
    os.kill(running._process.pid, signal.SIGKILL)
    running._process.wait()
    running.close()


PARENT = """
import sys, time
from labkit.server import start_server
print(start_server().url, flush=True)
time.sleep(60)
"""


@posix
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
def test_the_server_ends_with_its_parent_however_that_ends(how):
    with subprocess.Popen(
        [sys.executable, "-c", PARENT], cwd=ROOT, stdout=subprocess.PIPE, text=True
    ) as parent:
        url = parent.stdout.readline().strip()
        assert alive(url)
        parent.send_signal(how)
        parent.wait()
    assert gone(url)


# The command


def run(*options) -> subprocess.CompletedProcess:
    command = [*MOCK, *options]
    return subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, timeout=20
    )


def test_a_port_in_use_is_told_with_the_way_out():
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", 0))
        holder.listen()
        port = holder.getsockname()[1]
        done = run(f"--port={port}")
    assert done.returncode == 1
    assert done.stdout == ""
    (line,) = done.stderr.splitlines()
    assert line.startswith(f"--port {port}: cannot listen on 127.0.0.1:{port} (")
    assert "choose a port with --port (0 takes a free one)" in line


@posix
@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize("with_parent", [True, False])
def test_signals_end_it_in_silence(how, with_parent):
    """But an interrupt is for the notebook, when there is one."""
    options = ["--port=0", *(["--with-parent"] if with_parent else [])]
    pipe = subprocess.PIPE
    with subprocess.Popen(
        [*MOCK, *options], cwd=ROOT, stdin=pipe, stdout=pipe, stderr=pipe, text=True
    ) as process:
        url = process.stdout.readline().strip()
        # A request under way is no reason to stay, nor to complain.
        port = int(re.search(r":(\d+)/", url)[1])
        with socket.create_connection(("127.0.0.1", port)) as client:
            client.sendall(b"GET /hang/v1/chat HTTP/1.1\r\nHost: localhost\r\n\r\n")
            time.sleep(0.1)
            process.send_signal(how)
            if with_parent and how == signal.SIGINT:
                time.sleep(0.2)
                assert process.poll() is None and alive(url)
                time.sleep(0.1)  # 3.13's asyncio stumbles over a connection just made
                process.stdin.close()
            assert process.wait(timeout=5) == 0
        assert process.stderr.read() == ""


def test_every_setting_has_an_option_with_the_same_default():
    assert list(OPTIONS) == list(Settings.__dataclass_fields__)
    asked = arguments(["hostile"])
    assert Settings(**{name: getattr(asked, name) for name in OPTIONS}) == Settings()
    assert asked.port == 8787


@pytest.mark.parametrize(
    "option, value",
    [
        ("capacity", 5), ("capacity", None), ("delay_ms", 0.5), ("retry_after", "7"),
        ("retry_after", None), ("serial_ms", 0.3), ("requests_per_window", 10),
        ("tokens_per_window", None), ("window_s", 2.5), ("fail_rate", 0.05),
        ("leave_plain", "stop"), ("leave_stream", "finish"), ("first_ms", 7.5),
        ("port", 0), ("seed", 9),
    ],
)  # fmt: skip
def test_options_are_read(option, value):
    text = "none" if value is None else value
    asked = arguments(["hostile", f"--{option.replace('_', '-')}={text}"])
    assert getattr(asked, option) == value


@pytest.mark.parametrize(
    "option",
    [
        "--port=65536", "--port=-1", "--port=http", "--capacity=0", "--capacity=1.5",
        "--capacity=three", "--delay-ms=-1", "--delay-ms=nan", "--delay-ms=",
        "--retry-after=soon", "--retry-after=-1", "--requests-per-window=0",
        "--window-s=0", "--window-s=inf", "--fail-rate=1.1", "--fail-rate=nan",
        "--leave-plain=stay", "--seed=x", "--colour=red", "extra",
    ],
)  # fmt: skip
def test_a_bad_option_is_refused_by_name(option, capsys):
    with pytest.raises(SystemExit) as ended:
        arguments(["hostile", option])
    assert ended.value.code == 2
    assert option.partition("=")[0] in capsys.readouterr().err


def test_without_a_kind_it_says_which_there_are(capsys):
    with pytest.raises(SystemExit):
        arguments([])
    assert "kind" in capsys.readouterr().err


def test_a_missing_vocabulary_is_told_in_one_line(tmp_path):
    code = (
        "import pathlib, sys, mock.tokens; "
        f"mock.tokens.FOLDER = pathlib.Path({str(tmp_path)!r}); "
        "import mock.__main__ as cli; sys.exit(cli.main(['hostile', '--port=0']))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True
    )
    assert done.returncode == 1
    (line,) = done.stderr.splitlines()
    assert "git checkout -- data/tiktoken" in line
