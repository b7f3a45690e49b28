"""Write a line to $COMPILE_LOG for each Triton kernel that this process compiles for a launch.

Put this folder on PYTHONPATH: Python imports it at start. It waits for `triton.knobs` and sets
`jit_post_compile_hook` there; vLLM's monitor calls on the hook that it finds. A kernel read from
Triton's cache on disk counts too: this process did not have it.
"""

import importlib.abc
import importlib.machinery
import importlib.util
import json
import multiprocessing
import os
import sys
import time


def _record(**event):
    function = event.get("fn")
    line = {
        "time": time.time(),
        "pid": os.getpid(),
        "process": multiprocessing.current_process().name,
        "module": getattr(function, "module", None),
        "kernel": getattr(function, "name", None),
    }
    with open(os.environ["COMPILE_LOG"], "a") as log:
        log.write(json.dumps(line) + "\n")


def _install(knobs):
    earlier = knobs.runtime.jit_post_compile_hook

    def hook(**event):
        _record(**event)
        return None if earlier is None else earlier(**event)

    knobs.runtime.jit_post_compile_hook = hook


class _AfterImport(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name != "triton.knobs":
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        if spec is not None and spec.loader is not None:
            run = spec.loader.exec_module

            def run_and_install(module):
                run(module)
                _install(module)

            spec.loader.exec_module = run_and_install
        return spec


def _run_the_one_behind():
    """The environment's own sitecustomize, which this file stands in front of."""
    here = os.path.dirname(os.path.abspath(__file__))
    others = [entry for entry in sys.path if os.path.abspath(entry) != here]
    spec = importlib.machinery.PathFinder.find_spec("sitecustomize", others)
    if spec is not None and spec.loader is not None:
        spec.loader.exec_module(importlib.util.module_from_spec(spec))


if os.environ.get("COMPILE_LOG"):
    sys.meta_path.insert(0, _AfterImport())
_run_the_one_behind()
