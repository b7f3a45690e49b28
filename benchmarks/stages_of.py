"""One run of a verb, and how its processor time divides.

    python benchmarks/stages_of.py TABLE VERB TREE

The verb's result goes to stdout as ever; TABLE is a file that gets JSON: the milliseconds of each
stage, each without those of the stages inside it. `start` is all up to the plan, imports too, and
`end` is what the process takes once the verb is done: the caller knows that part alone.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from time import process_time
from typing import Any

from codemods.__main__ import main


class Clock:
    """Processor time by stage; the stage entered last gets it."""

    def __init__(self) -> None:
        self.spent: dict[str, float] = {}
        self._stages = ["start"]
        self._since = 0.0  # of this process's time, so that Python's own start counts

    def turn(self, stage: str | None) -> None:
        """Enter a stage, or leave the one entered last."""
        now = process_time()
        running = self._stages[-1]
        self.spent[running] = self.spent.get(running, 0.0) + now - self._since
        self._since = now
        self._stages = [*self._stages, stage] if stage else self._stages[:-1]

    def timed(self, stage: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def run(*given: Any, **named: Any) -> Any:
            self.turn(stage)
            try:
                return function(*given, **named)
            finally:
                self.turn(None)

        return run


def watch(clock: Clock) -> None:
    """Have the tool's own functions tell the clock their stage."""
    import libcst

    from codemods import write
    from codemods.cli import planned, streams, verbs
    from codemods.engine import files, planning, soundness
    from codemods.transforms import source

    for owner, name, stage in (
        (files, "read_file", "read"),
        (source, "syntax_tree", "parse"),
        (source, "_parse_on_a_deep_stack", "parse"),
        (planning, "compiles", "parse"),
        (planned, "make_plan", "decide"),
        (planning, "breaks", "decide"),
        (soundness, "require_sound", "decide"),
        (verbs, "table", "print"),
        (streams, "write", "print"),
        (write, "write", "write"),
    ):
        setattr(owner, name, clock.timed(stage, getattr(owner, name)))
    printed = libcst.Module.bytes.fget  # type: ignore[attr-defined]
    libcst.Module.bytes = property(clock.timed("print", printed))  # type: ignore[assignment]


def run(table: Path) -> int:
    clock = Clock()
    watch(clock)
    code = main()
    clock.turn(None)
    milliseconds = {stage: seconds * 1000 for stage, seconds in clock.spent.items()}
    table.write_text(json.dumps(milliseconds), "utf-8")
    return code


if __name__ == "__main__":
    out = Path(sys.argv.pop(1))
    sys.exit(run(out))
