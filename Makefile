# plumecast: everything a contributor runs. `make` lists the targets.
PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
SIZE   ?= paper
STORE  ?= paper.zarr
READY  := $(VENV)/.ready

# Clusters apart: their threads outlive them, and HDF5 knows no threads.
# One BLAS thread per test process: the tests already run in parallel.
TEST_ENV := OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1 MKL_NUM_THREADS=1

.DEFAULT_GOAL := help
.PHONY: help demo check test slow bench peers cluster clean

help:  ## list the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## */\t/' | expand -t 10

$(READY): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "plumecast needs Python 3.11 or newer; try: make PYTHON=python3.12"; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[dev]'
	@touch $@

demo: $(READY)  ## simulate fires, train, score, draw: results in plumecast-demo/
	$(BIN)/plumecast demo

check: $(READY)  ## lint, types, import layers
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

test: $(READY)  ## the tests, with branch coverage
	$(TEST_ENV) $(BIN)/python -m pytest -n auto --ignore=tests/cluster --cov --cov-report=
	$(TEST_ENV) $(BIN)/python -m pytest tests/cluster --cov --cov-append --cov-fail-under=90

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
