# make setup, then make test. Everything goes into .venv; nothing else on the machine is touched.
PYTHON ?= python3
BIN := .venv/bin
PYTEST ?= $(BIN)/python -m pytest

.PHONY: setup lint test search benchmark peers

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

# This tool beside what people use in its place: docs/benchmarks.md. git, patch and wiggle (Debian)
# have to be there. Time needs an idle machine: make peers PEERS="--only landing,fidelity" leaves it.
peers: setup .venv/peers/.ready
	$(BIN)/python benchmarks/peers.py $(PEERS)

.venv/peers/.ready: benchmarks/peers/requirements.txt
	$(PYTHON) -m venv .venv/peers
	.venv/peers/bin/python -m pip install -q -r benchmarks/peers/requirements.txt
	touch $@
