# Everything on a fresh machine that has only Python 3.11 or newer: each target makes its own environment first.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
EXTRAS := parquet,dask,slurm,test,lint

.PHONY: demo test test-lowest lint faults fuzz bench clean

## Reproduce Table 1 of shi2022 at laptop scale and write out/page.html.
demo: $(READY)
	@mkdir -p out
	$(BIN)/unlazy demo --store out/demo.sqlite --out out/page.html

## Run all tests.
test: $(READY)
	$(BIN)/python -m pytest -n 2 --dist loadfile

## Run all tests with the oldest supported versions, in an environment of their own.
test-lowest:
	$(PYTHON) -m venv .venv-lowest
	.venv-lowest/bin/pip install --quiet --upgrade pip
	.venv-lowest/bin/pip install --quiet --constraint constraints-lowest.txt --editable '.[parquet,test]'
	.venv-lowest/bin/python -m pytest -n 2 --dist loadfile

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

clean:
	rm -rf $(VENV) .venv-lowest out

$(READY): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "unlazy needs Python 3.11 or newer, but $(PYTHON) is $$($(PYTHON) --version). Name another: make PYTHON=python3.12 ..."; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --upgrade pip
	$(BIN)/pip install --quiet --constraint constraints.txt --editable '.[$(EXTRAS)]'
	@touch $(READY)
