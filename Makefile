# make run    set up and start the gateway (on the embedded emulator without a key)
# make test   set up and run everything a fresh machine can run
# make check  formatting, lint, types, import contracts and the fast tests
PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
PIP    := $(BIN)/python -m pip --disable-pip-version-check

.PHONY: run test check format lint types contracts fast test-clients test-browser test-faults test-attacks soak screenshots fuzz bless docs bench bench-docs lock sbom clean

run: $(VENV)/.runtime
	$(BIN)/dragoman serve

# The core first, measured to the last branch; then everything else.
CORE := tests/unit/core tests/unit/dialects tests/unit/http tests/unit/incremental tests/unit/ir tests/unit/schema tests/unit/translation \
        tests/unit/tools/core tests/unit/agent tests/corpus tests/golden

# Have targets of their own.
CHAOS := tests/chaos tests/soak
ATTACKS := tests/attacks

test: check
	$(BIN)/coverage erase
	$(BIN)/coverage run -m pytest -q -n auto $(CORE)
	$(BIN)/coverage combine --quiet
	$(BIN)/coverage report
	$(BIN)/pytest -q -n auto -m "not clients and not browser" $(CORE:%=--ignore=%) $(CHAOS:%=--ignore=%) $(ATTACKS:%=--ignore=%) tests

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

# Every fault in every dialect at every moment (DRAGOMAN_CHAOS_ROUNDS times), and a short soak.
test-faults: $(VENV)/.dev
	$(BIN)/pytest -q -n auto $(CHAOS)

# Floods, slow clients, oversized and ambiguous requests against a gateway process. One at a time: memory is measured.
test-attacks: $(VENV)/.dev
	$(BIN)/pytest -q $(ATTACKS)

# Mixed traffic with faults, judged by the vendors' libraries; prints memory, descriptors and violations.
SOAK_MIN ?= 30
soak: $(VENV)/.dev
	$(BIN)/python -m tests.soak $(SOAK_MIN)

# Real client programs, installed on demand into a cache folder outside the clone.
test-clients: $(VENV)/.dev
	$(BIN)/pytest -q -n auto -m clients tests/e2e tests/oracle

# The dashboard in a real Chromium (Debian's chromium, or any that is called so); axe-core comes into the same cache.
test-browser: $(VENV)/.dev
	$(BIN)/pytest -q -n auto --dist loadfile -m browser tests/browser

# The pictures of the dashboard in docs/images, made by the same tests; look at them before you commit them.
# They are set in Inter, JetBrains Mono and P052 (Debian: fonts-inter fonts-jetbrains-mono fonts-urw-base35).
screenshots: $(VENV)/.dev
	DRAGOMAN_SCREENSHOTS=1 $(BIN)/pytest -q -n 0 -m browser tests/browser/test_appearance.py -k pictures

# Spoilt requests to every route, and atheris on everything that reads bytes of strangers: so many rounds, so many
# seconds for each reader; what atheris learnt is kept for the next time.
FUZZ_S      ?= 60
FUZZ_ROUNDS ?= 3000
fuzz: $(VENV)/.dev
	DRAGOMAN_FUZZ_ROUNDS=$(FUZZ_ROUNDS) DRAGOMAN_FUZZ_S=$(FUZZ_S) DRAGOMAN_FUZZ_CORPUS=$${XDG_CACHE_HOME:-$$HOME/.cache}/dragoman-fuzz \
	  $(BIN)/pytest -q -n auto tests/fuzz/test_routes_fuzz.py tests/fuzz/test_decoders_fuzz.py --timeout 3600

# Write the golden files anew; read the diff before you commit it.
bless: $(VENV)/.dev
	DRAGOMAN_BLESS=1 $(BIN)/pytest -q tests/golden tests/house/test_docs.py tests/house/test_fault_matrix_page.py tests/house/test_dialect_pages.py tests/unit/observe/test_docs.py tests/unit/emulator/script/test_script_documents.py

# The site, with strict links and without a network, into build/site.
docs: $(VENV)/.docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet
	! grep -rlE '(src|href)="https?://[^"]*\.(js|css|woff2?)' build/site  # a reader's browser asks nobody else

# Beside nginx and the peers, which are installed into a cache folder outside the clone; BENCH=--quick is a short look.
BENCH ?=
bench: $(VENV)/.dev
	$(BIN)/python -m benchmarks $(BENCH)

# The same, and its part of docs/performance.md with the plots written anew.
bench-docs: $(VENV)/.bench
	$(BIN)/python -m benchmarks --write-docs $(BENCH)

# uv with the package index that pip uses.
UV   = UV_DEFAULT_INDEX="$${PIP_INDEX_URL:-$$($(PIP) config get global.index-url 2>/dev/null)}" $(BIN)/uv --quiet pip
LOCK = $(UV) compile --constraints constraints.txt --generate-hashes --no-emit-index-url --no-annotate --upgrade \
       --only-binary :all: --python-version 3.11.14 --python-platform linux --custom-compile-command "make lock"

# The container's packages with their hashes; run it after a change of constraints.txt.
lock: $(VENV)/.release
	$(LOCK) --extra redis --extra strict --extra vertex pyproject.toml --output-file deploy/requirements.txt
	echo setuptools | $(LOCK) - --output-file deploy/requirements-build.txt

# What the container installs, as CycloneDX: read from a venv with the same packages.
SBOM ?= dist/dragoman.cdx.json
sbom: $(VENV)/.release
	rm -rf build/sbom && $(PYTHON) -m venv --without-pip build/sbom
	$(UV) install --python build/sbom --require-hashes --only-binary :all: --requirements deploy/requirements.txt
	$(UV) install --python build/sbom --no-deps .
	mkdir -p $(dir $(SBOM))
	$(BIN)/cyclonedx-py environment --pyproject pyproject.toml --output-reproducible --output-file $(SBOM) build/sbom/bin/python

$(VENV)/.runtime: pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(PIP) install --quiet --constraint constraints.txt --editable .
	touch $@

$(VENV)/.dev: pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(PIP) install --quiet --constraint constraints.txt --editable '.[dev]'
	touch $@ $(VENV)/.runtime

$(VENV)/.docs: pyproject.toml constraints.txt | $(VENV)/.dev
	$(PIP) install --quiet --constraint constraints.txt --editable '.[docs]'
	touch $@

$(VENV)/.bench: pyproject.toml constraints.txt | $(VENV)/.dev
	$(PIP) install --quiet --constraint constraints.txt --editable '.[bench]'
	touch $@

$(VENV)/.release: pyproject.toml constraints.txt | $(VENV)/.dev
	$(PIP) install --quiet --constraint constraints.txt --editable '.[release]'
	touch $@

clean:
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis .coverage
