# make setup, then make test. Everything goes into .venv; nothing else on the machine is touched.
PYTHON ?= python3
BIN := .venv/bin
PYTEST ?= $(BIN)/python -m pytest

.PHONY: setup lint test search benchmark

setup: .venv/.ready

.venv/.ready: pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install -q -c constraints.txt -e '.[dev]'
	touch $@

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

SEARCHES := tests/forks/test_properties.py tests/forks/test_mutations.py

test: setup
	$(PYTEST) -n auto $(addprefix --ignore=,$(SEARCHES))

# Thousands of mixed and mutated trees: minutes, so apart from the tests of every change.
search: setup
	$(PYTEST) -n auto $(SEARCHES)

benchmark: setup
	$(BIN)/python benchmarks/check_cost.py
