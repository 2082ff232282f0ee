# Everything sets itself up: a virtual environment beside this file, made anew when pyproject.toml changes.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# Folders with blanks in their name are fine: only relative paths below.

.PHONY: help demo test test-all test-heavy bench bench-quick lint format clean

help:
	@echo "make demo       a real study on machines that are preempted, then the same at cloud scale (half a minute)"
	@echo "make test       set up and run the tests (minutes)"
	@echo "make test-all   the heavy suites as well"
	@echo "make bench      all benchmarks; make bench-quick for a two-minute look"
	@echo "make lint       ruff and mypy --strict"

$(VENV)/ready: pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit("Shoestring needs Python 3.11 or newer: make PYTHON=python3.11 ...") if sys.version_info < (3, 11) else 0'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e .
	touch $@

$(VENV)/ready-test: $(VENV)/ready
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[test]'
	touch $@

# One release of torch is enough for tests; the extra takes any from 2.4 on.
$(VENV)/ready-heavy: $(VENV)/ready-test
	$(BIN)/python -m pip install --quiet --disable-pip-version-check 'torch==2.13.0'
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[test-heavy]'
	touch $@

$(VENV)/ready-lint: $(VENV)/ready-test
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[lint]'
	touch $@

$(VENV)/ready-bench: $(VENV)/ready
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[bench]'
	touch $@

demo: $(VENV)/ready
	$(BIN)/shoestring demo

test: $(VENV)/ready-test
	$(BIN)/python -m pytest -m "not heavy" -n 2 --dist worksteal

test-heavy: $(VENV)/ready-heavy
	$(BIN)/python -m pytest -m heavy

test-all: test test-heavy

bench: $(VENV)/ready-bench
	$(BIN)/python -m benchmarks

bench-quick: $(VENV)/ready-bench
	$(BIN)/python -m benchmarks --quick

lint: $(VENV)/ready-lint
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: $(VENV)/ready-lint
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean:
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis build dist
