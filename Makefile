# Every target sets itself up: the first call makes .venv (about 2 minutes), later ones use it as it is.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
READY  := $(VENV)/.ready
OUT    ?= out

.PHONY: help demo test test-slow lint bench clean

help:  ## show this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## (.*)/  make \1\t\2/' | expand -t 20

demo: $(READY)  ## measure a synthetic problem and real digits; tables, figures and one HTML page
	@$(BIN)/python examples/demo.py $(OUT)/demo

test: $(READY)  ## run the tests (under 6 minutes on two cores)
	@$(BIN)/python -m pytest -q -m "not slow" tests

test-slow: $(READY)  ## run the tests with many seeds and full sizes
	@$(BIN)/python -m pytest -q -m slow tests

lint: $(READY)  ## check style, formatting and types
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy

bench: $(READY)  ## time against peers in the same run and write benchmarks/RESULTS.md (about 8 minutes)
	@$(BIN)/python -m pytest -q benchmarks --benchmark-only --benchmark-disable-gc -p no:cacheprovider

clean:  ## remove what the other targets made
	rm -rf $(VENV) $(OUT) .pytest_cache .mypy_cache .ruff_cache .hypothesis .benchmarks

$(READY): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "gradrank needs Python 3.11 or newer: make PYTHON=python3.11 …"; exit 1; }
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV) || \
		{ rm -rf $(VENV); echo "this Python has no venv module; on Debian: apt install python3-venv"; exit 1; }
	@echo "installing the pinned packages into $(VENV), about 2 minutes …"
	@$(BIN)/python -m pip install -qq --disable-pip-version-check -c constraints.txt hatchling editables
	@$(BIN)/python -m pip install -qq --disable-pip-version-check -c constraints.txt --no-build-isolation -e '.[cluster,data,parquet,dev]'
	@touch $(READY)
