# Everything on a fresh machine that has only Python 3.11 or newer: each target makes its own environment first.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
EXTRAS := parquet,dask,slurm,test,lint

.PHONY: demo test test-slow test-lowest lint faults fuzz bench docs links wheel wheel-lowest clean

## Reproduce Table 1 of shi2022 at laptop scale and write out/page.html.
demo: $(READY)
	@mkdir -p out
	$(BIN)/unlazy demo --store out/demo.sqlite --out out/page.html

## Run all tests.
test: $(READY)
	$(BIN)/python -m pytest -n 2 --dist loadfile --no-loadscope-reorder

## Run the tests that `make test` leaves out: every story in a browser, every example, notebook and page, all variants of contracts, long faults.
test-slow: $(READY)
	$(BIN)/python -m pytest -n 2 --dist loadfile -m slow

## Run all tests with the oldest supported versions, in an environment of their own.
test-lowest:
	$(PYTHON) -m venv .venv-lowest
	.venv-lowest/bin/pip install --quiet --upgrade pip
	.venv-lowest/bin/pip install --quiet --constraint constraints-lowest.txt --editable '.[parquet,test]'
	.venv-lowest/bin/python -m pytest -n 2 --dist loadfile --no-loadscope-reorder

## Check style and types.
lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

## Kill workers, coordinators, schedulers and jobs at random moments, fifty times each, and count what is lost.
faults: $(READY)
	$(BIN)/python scripts/faults.py

## Read a hundred thousand damaged stores, files and command lines.
fuzz: $(READY)
	$(BIN)/python scripts/fuzz.py

## Measure speed as ratios against peers, and name what fell since the last run.
bench: $(READY)
	$(BIN)/pip install --quiet --constraint constraints.txt --editable '.[bench]'
	$(BIN)/python -m benchmarks.run --since results/benchmarks.json --out results/benchmarks/all.json

## Build the documentation into docs/_build/html: without a network, and a warning is an error.
docs: $(READY)
	$(BIN)/pip install --quiet --constraint constraints.txt --editable '.[docs]'
	$(BIN)/python -m sphinx -W --keep-going -q -b html docs docs/_build/html
	@echo "The documentation is in docs/_build/html/index.html."

## Check the links to other sites, which needs a network.
links: $(READY)
	$(BIN)/pip install --quiet --constraint constraints.txt --editable '.[docs]'
	$(BIN)/python -m sphinx -q -b linkcheck docs docs/_build/links

## Build the wheel and try it outside of the checkout, in a fresh environment of each Python that is here.
wheel: $(READY)
	$(BIN)/pip install --quiet build
	$(BIN)/python -m build --wheel --outdir dist .
	$(BIN)/python scripts/try_wheel.py dist

## The same with the oldest supported versions of everything it needs: minutes, where `make test-lowest` runs all tests.
wheel-lowest: $(READY)
	$(BIN)/pip install --quiet build
	$(BIN)/python -m build --wheel --outdir dist .
	$(BIN)/python scripts/try_wheel.py dist --python 3.11 --lowest

clean:
	rm -rf $(VENV) .venv-lowest out dist docs/_build docs/examples docs/papers docs/interface docs/figures

$(READY): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "unlazy needs Python 3.11 or newer, but $(PYTHON) is $$($(PYTHON) --version). Name another: make PYTHON=python3.12 ..."; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --upgrade pip
	$(BIN)/pip install --quiet --constraint constraints.txt --editable '.[$(EXTRAS)]'
	@touch $(READY)
