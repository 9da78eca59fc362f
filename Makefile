# Two commands set everything up on a machine with Python 3.11 or newer, pip and make:
#
#   make demo    install, then optimise and benchmark ResNet-18
#   make test    install for development, then ruff, basedpyright, lit and pytest
#   make docs    write the site to build/site
#   make dist    write sdist and wheel to build/dist
#
# PYTHON=... chooses the interpreter; PYTEST=... adds arguments, e.g. "-m slow": the full counts.

usable = $(shell $(1) -c 'import sys; sys.version_info >= (3, 11) and print("$(1)")' 2>/dev/null)
PYTHON ?= $(firstword $(foreach name,python3 python3.12 python3.13 python3.11 python,$(call usable,$(name))))
PYTEST ?=
BIN := .venv/bin

.PHONY: demo test types lit docs dist

demo: .venv/installed
	$(BIN)/python scripts/demo.py

# pytest comes last, so that the last line is its count.
test: .venv/installed-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(MAKE) --no-print-directory --jobs=2 types lit
	$(BIN)/python -m pytest --numprocesses auto $(PYTEST)

# Side by side: the types are checked by one core.
types lit: .venv/installed-dev
types:
	$(BIN)/basedpyright --pythonpath $(BIN)/python
lit:
	$(BIN)/lit --quiet lit_tests

# What is printed about mkdocs itself is no fault of the documents.
docs: .venv/installed-docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict
	@echo "to read it: open build/site/index.html in a browser (its search needs no network)"

dist: .venv/installed-dev
	$(BIN)/python -m build --outdir build/dist

.venv/installed: pyproject.toml | .venv
	$(BIN)/python -m pip install --disable-pip-version-check --quiet --editable .
	touch $@

.venv/installed-dev: pyproject.toml | .venv
	$(BIN)/python -m pip install --disable-pip-version-check --quiet --editable '.[dev]'
	touch $@ .venv/installed

.venv/installed-docs: pyproject.toml | .venv
	$(BIN)/python -m pip install --disable-pip-version-check --quiet --editable '.[docs]'
	touch $@ .venv/installed

# Some distributions ship venv without ensurepip: then the system's pip installs pip.
.venv:
	@test -n "$(PYTHON)" || { echo "isoform needs Python 3.11 or newer (make PYTHON=...)" >&2; exit 1; }
	$(PYTHON) -m venv .venv || { \
	  $(PYTHON) -m venv --clear --without-pip .venv && \
	  $(PYTHON) -m pip --python $(BIN)/python install pip; }
