# make run    set up and start the gateway (on the embedded emulator without a key)
# make test   set up and run everything a fresh machine can run
# make check  formatting, lint, types, import contracts and the fast tests
PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
PIP    := $(BIN)/python -m pip --disable-pip-version-check

.PHONY: run test check format lint types contracts fast test-clients bless bench clean

run: $(VENV)/.runtime
	$(BIN)/dragoman serve

# The core first, alone and measured to the last branch; then everything else, on all processors.
CORE := tests/unit/core tests/unit/dialects tests/unit/ir tests/unit/repair tests/unit/schema tests/unit/test_exchange.py \
        tests/unit/tools/core tests/unit/agent tests/corpus tests/golden

test: check
	$(BIN)/coverage run -m pytest -q -n 0 $(CORE)
	$(BIN)/coverage report
	$(BIN)/pytest -q -n auto -m "not clients" $(CORE:%=--ignore=%) tests

check: format lint types contracts

format: $(VENV)/.dev
	$(BIN)/ruff format --check .

lint: $(VENV)/.dev
	$(BIN)/ruff check .

types: $(VENV)/.dev
	$(BIN)/mypy

contracts: $(VENV)/.dev
	$(BIN)/lint-imports

fast: $(VENV)/.dev
	$(BIN)/pytest -q tests/unit tests/corpus tests/golden tests/house

# Real client programs, installed on demand into a cache folder outside the clone.
test-clients: $(VENV)/.dev
	$(BIN)/pytest -q -n auto -m clients tests/e2e

# Write the golden files anew; read the diff before you commit it.
bless: $(VENV)/.dev
	DRAGOMAN_BLESS=1 $(BIN)/pytest -q tests/golden tests/house/test_docs.py tests/unit/emulator/script/test_documents.py

bench: $(VENV)/.dev
	$(BIN)/python -m benchmarks

$(VENV)/.runtime: pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(PIP) install --quiet --constraint constraints.txt --editable .
	touch $@

$(VENV)/.dev: pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(PIP) install --quiet --constraint constraints.txt --editable '.[dev]'
	touch $@ $(VENV)/.runtime

clean:
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis .coverage
