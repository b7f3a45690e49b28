"""The exit codes, and the checks that end a command before it does anything.

Modules that only one cause needs are imported by it, so that `check` starts fast.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Sequence
from pathlib import Path

from codemods.engine.plan import FileChange, Plan, Verdict
from codemods.engine.repository import may_be_tracked
from codemods.output.table import refusal_lines

NOTHING, WOULD_CHANGE, FAILED, USAGE, REFUSED, WRITE_FAILED = 0, 1, 1, 2, 3, 4
INTERRUPTED = 130


class Stop(Exception):
    """Ends the command with an exit code and lines for stderr."""

    def __init__(self, code: int, *lines: str) -> None:
        self.code = code
        self.lines = lines
        super().__init__(*lines)


def raise_if_refused(plan: Plan) -> None:
    """An edit is refused, and so the tree."""
    if plan.refusals:
        raise Stop(REFUSED, *refusal_lines(plan))


def raise_if_unmet(plans: Iterable[Plan], options: argparse.Namespace) -> None:
    """`--require` names another verdict than a tree has; a line for each such tree."""
    if options.require:
        from codemods.cli.require import unmet

        lines = [unmet(plan, Verdict(options.require)) for plan in plans]
        if any(lines):
            raise Stop(FAILED, *filter(None, lines))


def raise_if_unsound(plan: Plan) -> None:
    """The bytes to write would not keep what is outside the edits."""
    from codemods.engine.soundness import Unsound, require_sound

    try:
        require_sound(plan)
    except Unsound as error:
        raise Stop(REFUSED, str(error)) from None


def raise_if_dirty(root: Path, changes: Sequence[FileChange]) -> None:
    """A file to write has changes that are not committed."""
    if not any(may_be_tracked(root / change.path) for change in changes):
        return
    from codemods.engine.uncommitted import GitUnsure, dirty_files

    try:
        dirty = dirty_files(root, [change.path for change in changes])
    except GitUnsure as error:
        raise Stop(REFUSED, str(error)) from None
    if dirty:
        raise Stop(
            REFUSED,
            f"uncommitted changes in {', '.join(dirty)}: commit or stash them, or pass "
            "--allow-dirty",
        )
