"""A JupyterLab of the test's own, and a browser that uses it as a person does.

The notebooks are copies: JupyterLab saves by itself, and nothing here may change what
is committed. All its settings and run files are in the same temporary folder.
"""

import json
import os
import secrets
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import nbformat
from playwright.sync_api import Locator, Page

from labkit.notebooks import KERNELSPEC

ROOT = Path(__file__).resolve().parents[2]
START_S = 60
RUN_S = 240  # of a whole notebook, on a busy machine

SETTINGS = {
    # A notebook draws only what is in sight, and a test wants all of it.
    "@jupyterlab/notebook-extension:tracker": {"windowingMode": "none"},
    # It would ask a server on the network for news.
    "@jupyterlab/apputils-extension:notification": {
        "fetchNews": "false",
        "checkForUpdates": False,
    },
}


@contextmanager
def running_lab(folder: Path) -> Iterator[str]:
    """JupyterLab on copies of the notebooks under `folder`; yields its address."""
    work, home = folder / "notebooks", folder / "home"
    shutil.copytree(ROOT / "notebooks", work)
    empty = nbformat.v4.new_notebook(
        cells=[nbformat.v4.new_code_cell()], metadata={"kernelspec": KERNELSPEC}
    )
    nbformat.write(empty, work / "scratch.ipynb")
    settings = home / "lab" / "settings"
    settings.mkdir(parents=True)
    (settings / "overrides.json").write_text(json.dumps(SETTINGS))
    token = secrets.token_hex(8)
    places = {
        "JUPYTER_CONFIG_DIR": home / "config",
        "JUPYTER_RUNTIME_DIR": home / "run",
        "JUPYTERLAB_SETTINGS_DIR": home / "user",
        "JUPYTERLAB_WORKSPACES_DIR": home / "workspaces",
        "IPYTHONDIR": home / "ipython",
    }
    with (folder / "lab.log").open("w") as log:
        server = subprocess.Popen(
            [
                sys.executable, "-m", "jupyterlab", str(work), "--no-browser",
                "--ip=127.0.0.1", "--port=0", "--allow-root",
                f"--IdentityProvider.token={token}",
                f"--LabApp.app_settings_dir={settings}",
            ],
            env={**os.environ, **{name: str(path) for name, path in places.items()}},
            stdout=log, stderr=log,
        )  # fmt: skip
        try:
            url = address(server, home / "run", folder / "lab.log")
            yield f"{url}lab/tree/%s?token={token}&reset"
        finally:
            server.terminate()
            server.wait(30)


def address(server: subprocess.Popen, run: Path, log: Path) -> str:
    """Where it listens, as it says itself: the port is one that was free."""
    for _ in range(10 * START_S):
        for told in run.glob("jpserver-*.json"):
            return json.loads(told.read_text())["url"]
        assert server.poll() is None, log.read_text()
        time.sleep(0.1)
    raise AssertionError(f"JupyterLab did not start: {log.read_text()}")


class Notebook:
    """An open notebook: what a person can see of it and do with it."""

    def __init__(self, page: Page, url: str, name: str):
        self.page = page
        page.goto(url % name)
        self.panel = page.locator(".jp-NotebookPanel:visible")
        self.panel.locator(".jp-CodeCell").first.wait_for(timeout=1000 * START_S)
        self.wait_for_idle()

    def wait_for_idle(self) -> None:
        """The status bar knows; the notebook's own sign is idle before a kernel is."""
        idle = self.page.locator("#jp-main-statusbar").get_by_text("| Idle")
        idle.wait_for(timeout=1000 * RUN_S)

    def wait_for_busy(self) -> None:
        self.page.locator("#jp-main-statusbar").get_by_text("| Busy").wait_for()

    def menu(self, menu: str, command: str) -> None:
        self.page.get_by_role("menuitem", name=menu, exact=True).click()
        self.page.locator(f'[data-command="{command}"]').first.click()

    def run_all(self) -> None:
        """Run All Cells, and wait until none waits or runs any more."""
        self.press(lambda: self.menu("Run", "runmenu:run-all"))
        self.page.wait_for_function(
            """() => {
                const prompts = [...document.querySelectorAll(
                    '.jp-NotebookPanel .jp-CodeCell .jp-InputPrompt')]
                    .map(prompt => prompt.textContent);
                return prompts.some(each => each != '[ ]:')
                    && !prompts.includes('[*]:');
            }""",
            timeout=1000 * RUN_S,
        )
        self.wait_for_idle()

    def type_into_first_cell(self, code: str) -> None:
        self.cells.first.locator(".cm-content").fill(code.strip())

    def wait_for_another(self, drawn: list[str]) -> None:
        """Wait until a picture is there that is not among these."""
        self.page.wait_for_function(
            """drawn => [...document.querySelectorAll(
                '.jp-NotebookPanel .jp-OutputArea-output img')]
                .some(img => img.complete && !drawn.includes(img.src))""",
            arg=drawn,
        )

    def run_first_cell(self) -> None:
        """As Ctrl+Enter does."""
        text = self.cells.first.locator(".cm-content")
        self.press(lambda: text.press("Control+Enter"))

    def press(self, button: Callable[[], None]) -> None:
        """Until it has had its effect: a kernel that is only just connected drops the
        cells it is sent, and the page shows them as not run."""
        for _ in range(5):
            button()
            self.page.wait_for_timeout(1500)
            if len(self.not_run) < self.cells.count():
                return
        raise AssertionError("the kernel takes no cells")

    @property
    def not_run(self) -> list[str]:
        """The first line of each code cell without a number."""
        return self.page.evaluate(
            """() => [...document.querySelectorAll('.jp-NotebookPanel .jp-CodeCell')]
                .filter(cell => cell.querySelector('.jp-InputPrompt')
                    .textContent == '[ ]:')
                .map(cell => cell.querySelector('.cm-line').innerText)"""
        )

    @property
    def cells(self) -> Locator:
        return self.panel.locator(".jp-CodeCell")

    @property
    def errors(self) -> list[str]:
        """Tracebacks, and whatever was written to standard error."""
        mime = "application/vnd.jupyter"
        found = self.panel.locator(
            f'[data-mime-type="{mime}.error"], [data-mime-type="{mime}.stderr"]'
        )
        return found.all_inner_texts()

    @property
    def pictures(self) -> list[str]:
        """The source of each picture that is really drawn."""
        return self.page.evaluate(
            """() => [...document.querySelectorAll(
                '.jp-NotebookPanel .jp-OutputArea-output img')]
                .filter(img => img.complete && img.naturalWidth > 0)
                .map(img => img.src)"""
        )

    @property
    def scrolled(self) -> int:
        """Output areas that are wider than the page shows."""
        return self.page.evaluate(
            """() => [...document.querySelectorAll(
                '.jp-NotebookPanel .jp-OutputArea-output')]
                .filter(each => each.scrollWidth > each.clientWidth + 1).length"""
        )
