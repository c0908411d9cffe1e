# plumecast: everything a contributor runs. `make` lists the targets.
PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
SIZE   ?= paper
STORE  ?= paper.zarr
SEED   ?= 0
DEMO   := $(VENV)/.demo
READY  := $(VENV)/.ready
DOCS   := $(VENV)/.docs
SITE   := docs/_build/html
PIP    := $(BIN)/python -m pip install --quiet --constraint constraints.txt

# One BLAS thread per test process: the tests already run in parallel.
TEST_ENV := OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1 MKL_NUM_THREADS=1

# What depends most on the versions of other packages. Tests of messages are left out: versions of rich
# and typer differ in empty lines and in the words of their own errors.
VERSIONS := tests/data tests/surrogate/test_surrogate.py tests/surrogate/test_file.py tests/cli/test_evaluate_stores.py
LOCK     := --universal --python-version 3.11 --no-annotate --no-header

.DEFAULT_GOAL := help
.PHONY: help demo check test cover test-most test-cluster docs slow fuzz audit bench peers cluster oldest oldest-environment newest newest-environment lock release clean

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

# … and Sphinx with its extensions.
$(DOCS): $(READY)
	$(PIP) --group docs
	@touch $@

demo: $(DEMO)  ## simulate fires, train, score, draw: results in plumecast-demo/
	$(BIN)/plumecast demo

check: $(READY)  ## lint, types, import layers
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

# Tests of clusters run in a process of their own, beside the others: their threads outlive them and
# HDF5 is not thread-safe. `make docs` runs the tutorials and `make release` the tests of the wheel.
TESTS := tests --ignore=tests/cluster --ignore=tests/e2e/test_tutorials.py --ignore=tests/e2e/test_wheel.py

test: $(READY)  ## the tests, and the 25 slowest of them
	$(MAKE) --no-print-directory -j2 --output-sync=target test-most test-cluster

cover: $(READY)  ## the tests with at least 90 % branch coverage
	$(MAKE) --no-print-directory -j2 --output-sync=target test-most test-cluster COVER="--cov --cov-report="
	$(BIN)/python -m coverage combine .coverage.most .coverage.cluster
	$(BIN)/python -m coverage report --fail-under=90

test-most:
	$(TEST_ENV) COVERAGE_FILE=.coverage.most $(BIN)/python -m pytest $(TESTS) -n auto --dist loadfile --durations=25 $(COVER)

test-cluster:
	$(TEST_ENV) COVERAGE_FILE=.coverage.cluster $(BIN)/python -m pytest tests/cluster --durations=5 $(COVER)

# Tutorials call plumecast as a reader would, so it must be found. Their results are kept until
# their text changes; `make clean` forgets them.
docs: $(DOCS)  ## the documentation site in docs/_build/html; warnings and dead links are errors
	PATH="$(abspath $(BIN)):$$PATH" $(TEST_ENV) $(BIN)/python -m sphinx -b html -q -W --keep-going docs $(SITE)
	$(BIN)/python -m tools.docs.site.check $(SITE)

slow: $(READY)  ## the long tests
	$(TEST_ENV) $(BIN)/python -m pytest -m slow

fuzz: $(READY)  ## mutated inputs, kills and races (SEED=0; about half an hour)
	$(TEST_ENV) $(BIN)/python -m tools.fuzz --seed $(SEED)

audit: $(READY)  ## licences and known vulnerabilities of the locked dependencies (needs a network)
	$(BIN)/python tools/audit.py constraints.txt

bench: $(READY)  ## the benchmarks (SIZE=small: under a minute)
	$(BIN)/python benchmarks/core.py --size $(SIZE)
	$(BIN)/python benchmarks/simulator.py --size $(SIZE)
	$(BIN)/python benchmarks/ingest.py --size $(SIZE)
	$(BIN)/python benchmarks/limits.py --size $(SIZE) $(if $(filter paper,$(SIZE)),--docs docs/benchmarks.md)

peers: $(READY)  ## plumecast beside other packages on STORE=paper.zarr, into docs/results/other-packages.md
	$(BIN)/python -m pip install --quiet --constraint constraints.txt ezyrb pyapprox
	$(BIN)/python benchmarks/peers.py $(STORE) --docs docs/results/other-packages.md

cluster: $(READY)  ## a local cluster beside one process on STORE=paper.zarr, into docs/results/cluster.md
	$(BIN)/python benchmarks/cluster.py $(STORE) --docs docs/results/cluster.md

# The lower bounds of pyproject.toml, without torch (gigabytes). What old versions warn of is theirs,
# and old xarray imports file libraries sooner than new.
oldest-environment: .venv-oldest/.ready
.venv-oldest/.ready: pyproject.toml constraints-oldest.txt
	$(PYTHON) -m venv .venv-oldest
	.venv-oldest/bin/python -m pip install --quiet --upgrade 'pip>=25.1'
	.venv-oldest/bin/python -m pip install --quiet --constraint constraints-oldest.txt --editable '.[simulator,report]' --group versions
	@touch $@

oldest: .venv-oldest/.ready  ## a part of the tests with the oldest supported versions
	$(TEST_ENV) .venv-oldest/bin/python -m pytest $(VERSIONS) --deselect tests/data/test_store.py::test_importing_the_data_room_loads_no_file_library -W ignore::DeprecationWarning -W ignore::FutureWarning -W 'ignore:numpy.ndarray size changed'

newest-environment: .venv-newest/.ready
.venv-newest/.ready: pyproject.toml
	$(PYTHON) -m venv .venv-newest
	.venv-newest/bin/python -m pip install --quiet --upgrade 'pip>=25.1'
	.venv-newest/bin/python -m pip install --quiet --upgrade --editable '.[simulator,report]' --group versions
	@touch $@

newest: .venv-newest/.ready  ## the same part with the newest versions that can be installed
	$(TEST_ENV) .venv-newest/bin/python -m pytest $(VERSIONS)

lock: $(READY)  ## write constraints.txt and constraints-oldest.txt anew from pyproject.toml (needs a network)
	$(BIN)/python -m pip install --quiet 'uv>=0.5'
	$(BIN)/uv pip compile pyproject.toml $(LOCK) --upgrade --extra all --group dev --group docs --group release --group oracles -o constraints.txt
	$(BIN)/uv pip compile pyproject.toml $(LOCK) --resolution lowest-direct --extra simulator --extra report --group versions -o constraints-oldest.txt

release: $(READY)  ## build sdist and wheel into dist/, check them, try the wheel in an empty environment
	rm -rf dist
	$(PIP) --group release
	$(BIN)/python -m build --no-isolation --outdir dist
	$(BIN)/python tools/release.py dist
	$(BIN)/twine check --strict dist/*
	PLUMECAST_WHEEL="$$(ls dist/*.whl)" $(TEST_ENV) $(BIN)/python -m pytest tests/e2e/test_wheel.py

clean:  ## remove the environment and caches
	rm -rf $(VENV) .venv-oldest .venv-newest dist docs/_build .coverage* .hypothesis .mypy_cache .pytest_cache .ruff_cache .import_linter_cache
