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

test: setup
	$(PYTEST) -n auto --dist worksteal

# Twenty times the mixed trees of `make test`, drawn anew each time: an hour.
search: setup
	FORKS_PROFILE=search FORKS_SCALE=20 $(PYTEST) -n auto tests/forks/test_properties.py

benchmark: setup
	$(BIN)/python benchmarks/check_cost.py
