"""The edits that every warm-up recipe makes.

They are written in an order such that after each file the tree works: the worker, which calls the
warm-up, comes last.
"""

from __future__ import annotations

KERNEL = "kernel"
WARMUP = "warmup"
WORKER = "worker"
UNIT_TESTS = "unit-tests"

REPORTED = (KERNEL, WARMUP, WORKER, UNIT_TESTS)
WRITTEN = (KERNEL, WARMUP, UNIT_TESTS, WORKER)
