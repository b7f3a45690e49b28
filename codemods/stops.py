"""What ends a command before it does anything: the exit codes, and a function for each cause.

Modules that only one cause needs are imported by it, so that `check` starts fast.
"""

from __future__ import annotations

import argparse

from codemods import report
from codemods.outcome import Plan, Verdict

NOTHING, WOULD_CHANGE, FAILED, USAGE, REFUSED, WRITE_FAILED = 0, 1, 1, 2, 3, 4
INTERRUPTED = 130


class Stop(Exception):
    """Ends the command with an exit code and lines for stderr."""

    def __init__(self, code: int, *lines: str) -> None:
        self.code = code
        self.lines = lines
        super().__init__(*lines)


def where_refused(plan: Plan) -> None:
    """An edit is refused, and so the tree."""
    if plan.refusals:
        raise Stop(REFUSED, *report.refusal_lines(plan))


def where_unmet(plan: Plan, options: argparse.Namespace) -> None:
    """`--require` names another verdict than the tree has."""
    if options.require:
        from codemods.require import unmet

        line = unmet(plan, Verdict(options.require))
        if line is not None:
            raise Stop(FAILED, line)


def where_unsound(plan: Plan) -> None:
    """The bytes to write would not parse, or not keep what is outside the edits."""
    from codemods.transforms.source import compiles, survives_parsing

    for change in plan.changes:
        if not change.path.endswith(".py"):
            continue  # an installed package's RECORD
        if not survives_parsing(change.before):
            raise Stop(REFUSED, f"{change.path}: parsing it would change bytes outside the edit")
        if compiles(change.before) and not compiles(change.after):
            raise Stop(REFUSED, f"{change.path}: the rewritten file would not parse")


def where_dirty(plan: Plan) -> None:
    """A file to write has changes that are not committed."""
    from codemods.git import GitUnsure, dirty_files

    try:
        dirty = dirty_files(plan.tree.root, [change.path for change in plan.changes])
    except GitUnsure as error:
        raise Stop(REFUSED, f"{error}; --allow-dirty goes on without asking git") from None
    if dirty:
        raise Stop(
            REFUSED,
            f"uncommitted changes in {', '.join(dirty)}: commit or stash them, or --allow-dirty",
        )
