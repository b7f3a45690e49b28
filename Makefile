# make demo, make test: each sets up what it needs, in .venv; nothing else on the machine is touched.
PYTHON ?= python3
BIN := .venv/bin
PYTEST ?= $(BIN)/python -m pytest

.PHONY: demo setup lint test search benchmark peers gpu-test

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

# Every release, every planted fault in every tree, and the whole searches, drawn again each time:
# an hour.
search: setup
	FORKS_PROFILE=search FORKS_SCALE=30 $(PYTEST) -n auto tests/forks tests/releases tests/engine/test_commits.py \
	    tests/packaging tests/write \
	    tests/recipes/kv_block_zeroing/test_releases.py tests/recipes/kv_block_zeroing/proofs \
	    tests/recipes/slot_mapping/test_check_of_planted.py tests/recipes/slot_mapping/proofs

benchmark: setup
	$(BIN)/python benchmarks/check_cost.py

# On a machine with a GPU: serve the vLLM tree TREE before and after the rewrite. GPU_PYTHON is a
# Python in which that vLLM runs, with pytest and libcst beside it; GPUS=2 runs the rows of two.
GPU_PYTHON ?= python3
GPUS ?= 1
gpu-test:
	@test -n "$(TREE)" || { echo "name a vLLM tree: make gpu-test TREE=path"; exit 2; }
	GPUS=$(GPUS) $(GPU_PYTHON) -m pytest -v -m gpu --vllm-tree="$(TREE)" tests/gpu

# This tool beside what people use in its place: docs/benchmarks.md. git, patch and wiggle (Debian)
# have to be there. Time needs an idle machine: make peers PEERS="--only landing,fidelity" leaves it.
peers: setup .venv/peers/.ready
	$(BIN)/python benchmarks/peers.py $(PEERS)

.venv/peers/.ready: benchmarks/peers/requirements.txt
	$(PYTHON) -m venv .venv/peers
	.venv/peers/bin/python -m pip install -q -r benchmarks/peers/requirements.txt
	touch $@
