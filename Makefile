# plumecast: everything a contributor runs. `make` lists the targets.
PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
SIZE   ?= paper
STORE  ?= paper.zarr
DEMO   := $(VENV)/.demo
READY  := $(VENV)/.ready
PIP    := $(BIN)/python -m pip install --quiet --constraint constraints.txt

# One BLAS thread per test process: the tests already run in parallel.
TEST_ENV := OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1 MKL_NUM_THREADS=1

.DEFAULT_GOAL := help
.PHONY: help demo check test cover slow bench peers cluster clean

help:  ## list the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## */\t/' | expand -t 10

# The environment of the demo: the core, the simulator and the report.
$(DEMO): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "plumecast needs Python 3.11 or newer; try: make PYTHON=python3.12"; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(PIP) --editable '.[simulator,report]'
	@touch $@

# The environment of a contributor: every extra, tests, lint and types. pip 25.1 reads groups.
$(READY): $(DEMO)
	$(PIP) --upgrade 'pip>=25.1'
	$(PIP) --editable '.[all]' --group dev
	@touch $@

demo: $(DEMO)  ## simulate fires, train, score, draw: results in plumecast-demo/
	$(BIN)/plumecast demo

check: $(READY)  ## lint, types, import layers
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

# Tests of clusters run in a process of their own: their threads outlive them and HDF5 is not
# thread-safe.
test: $(READY)  ## the tests, and the 25 slowest of them
	$(TEST_ENV) $(BIN)/python -m pytest -n auto --ignore=tests/cluster --durations=25
	$(TEST_ENV) $(BIN)/python -m pytest tests/cluster --durations=25

cover: $(READY)  ## the tests, with at least 90 % branch coverage
	$(TEST_ENV) $(BIN)/python -m pytest -n auto --ignore=tests/cluster --durations=25 --cov --cov-report=
	$(TEST_ENV) $(BIN)/python -m pytest tests/cluster --durations=25 --cov --cov-append --cov-fail-under=90

slow: $(READY)  ## the long tests
	$(TEST_ENV) $(BIN)/python -m pytest -m slow

bench: $(READY)  ## the benchmarks (SIZE=small: under a minute)
	$(BIN)/python benchmarks/core.py --size $(SIZE)
	$(BIN)/python benchmarks/simulator.py --size $(SIZE)
	$(BIN)/python benchmarks/ingest.py --size $(SIZE)
	$(BIN)/python benchmarks/limits.py --size $(SIZE) $(if $(filter paper,$(SIZE)),--docs docs/benchmarks.md)

peers: $(READY)  ## plumecast beside other packages on STORE=paper.zarr, into docs/benchmarks.md
	$(BIN)/python -m pip install --quiet --constraint constraints.txt ezyrb pyapprox
	$(BIN)/python benchmarks/peers.py $(STORE) --docs docs/benchmarks.md

cluster: $(READY)  ## a local cluster beside one process on STORE=paper.zarr, into docs/benchmarks.md
	$(BIN)/python benchmarks/cluster.py $(STORE) --docs docs/benchmarks.md

clean:  ## remove the environment and caches
	rm -rf $(VENV) .coverage .hypothesis .mypy_cache .pytest_cache .ruff_cache .import_linter_cache
