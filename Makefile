# make demo, make test: each sets up what it needs, in .venv; nothing else on the machine is touched.
PYTHON ?= python3
BIN := .venv/bin
PYTEST ?= $(BIN)/python -m pytest

.PHONY: demo setup lint test search benchmark

# The patch of a real release on stdout, with the few packages that this needs.
demo: .venv/.demo
	$(BIN)/vllm-codemods diff --release 0.21.0

.venv/.demo: pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install -q -c constraints.txt -e '.[release]'
	touch $@

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

# The whole searches, drawn anew each time: an hour.
search: setup
	FORKS_PROFILE=search FORKS_SCALE=20 $(PYTEST) -n auto tests/forks/test_properties.py tests/write/test_on_a_release.py

benchmark: setup
	$(BIN)/python benchmarks/check_cost.py
