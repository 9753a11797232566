"""The notebooks in a real JupyterLab, in a real browser: `make test-browser`.

Chromium is Debian's, or what LABKIT_CHROMIUM names. Nothing is looked up anywhere.
"""

import os
import shutil

import nbformat
import pytest
from playwright.sync_api import sync_playwright

from tests.browser.lab import ROOT, Notebook, running_lab

NOTEBOOKS = sorted(
    path.name
    for pattern in ("[0-9][0-9]_*.ipynb", "primer*.ipynb")
    for path in (ROOT / "notebooks").glob(pattern)
)
KNOWN = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
QUIET = [
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
]  # fmt: skip


@pytest.fixture(scope="session")
def chromium():
    named = os.environ.get("LABKIT_CHROMIUM")
    found = named or next(filter(None, map(shutil.which, KNOWN)), None)
    assert found, (
        "no Chromium: install it (Debian and Ubuntu: apt install chromium), or name"
        " one in LABKIT_CHROMIUM"
    )
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=found, args=QUIET)
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def lab(tmp_path_factory):
    with running_lab(tmp_path_factory.mktemp("lab")) as url:
        yield url


@pytest.fixture
def open_notebook(chromium, lab):
    page = chromium.new_page(viewport={"width": 1280, "height": 900})
    yield lambda name: Notebook(page, lab, name)
    page.close()


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_run_all(open_notebook, name):
    notebook = open_notebook(name)
    notebook.run_all()
    assert notebook.errors == []
    assert notebook.not_run == []
    committed = nbformat.read(ROOT / "notebooks" / name, as_version=4)
    drawn = sum(
        "image/png" in output.get("data", {})
        for cell in committed.cells
        for output in cell.get("outputs", ())
    )
    assert len(notebook.pictures) >= drawn


def test_the_herd_moves_with_its_controls(open_notebook):
    notebook = open_notebook("02_retries.ipynb")
    notebook.run_all()
    controls = notebook.panel.locator(".jp-OutputArea-output .widget-vbox")
    assert controls.locator(".widget-hslider").count() == 4
    drawn = notebook.pictures
    controls.locator("select").select_option("full")
    notebook.wait_for_another(drawn)
    drawn = notebook.pictures
    controls.locator(".widget-hslider").first.locator(".noUi-handle").press("Home")
    notebook.wait_for_another(drawn)
    assert notebook.errors == []


RUNNING = """
import labkit
from labkit.harness import new_run, run
from labkit.workspace import Workspace, opening

server = labkit.start_server("scripted", delay_ms=0)
with Workspace() as workspace:
    async with labkit.ChatClient(server.url) as client:
        with labkit.stop_button() as stop:
            state = new_run("slow", opening())
            await run(state, workspace.tools(), client, stop=stop, on_progress=print)
server.close()
print(state.status, state.interruption["type"], state.resumable)
"""


def test_the_interrupt_button_ends_a_run_as_stop(open_notebook, lab):
    notebook = open_notebook("scratch.ipynb")
    notebook.type_into_first_cell(RUNNING)
    notebook.run_first_cell()
    notebook.panel.get_by_text("scanned").first.wait_for()
    notebook.menu("Kernel", "kernelmenu:interrupt")
    notebook.panel.get_by_text("interrupted cancelled True").wait_for()
    assert notebook.errors == []


WAITING = """
import labkit
labkit.check()
await labkit.Stop().wait()
"""


def test_left_alone_an_interrupt_ends_a_cell_at_once_and_the_kernel_goes_on(
    open_notebook,
):
    notebook = open_notebook("scratch.ipynb")
    notebook.type_into_first_cell(WAITING)
    notebook.run_first_cell()
    notebook.wait_for_busy()
    notebook.menu("Kernel", "kernelmenu:interrupt")
    notebook.wait_for_idle()
    notebook.type_into_first_cell("print(6 * 7)")
    notebook.run_first_cell()
    notebook.panel.get_by_text("42", exact=True).wait_for()
