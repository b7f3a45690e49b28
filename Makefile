# make setup, then make test. Everything goes into .venv; nothing else on the machine is touched.
PYTHON ?= python3
BIN := .venv/bin
PYTEST ?= $(BIN)/python -m pytest

.PHONY: setup lint test benchmark

setup: .venv/.ready

.venv/.ready: pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install -q -c constraints.txt -e '.[dev]'
	touch $@

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

test: setup
	$(PYTEST) -n auto

benchmark: setup
	$(BIN)/python benchmarks/check_cost.py
