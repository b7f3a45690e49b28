"""What must hold of every change, whichever recipe made it."""

from __future__ import annotations

from codemods.engine.hunks import only_adds
from codemods.engine.plan import FileChange, Plan
from codemods.transforms.source import compiles, survives_parsing


class Unsound(Exception):
    """A change that must not be made; the message is one line that names the file."""


def breaks(change: FileChange) -> bool:
    """Whether a file that the running Python accepts would no longer be accepted."""
    return not compiles(change.after) and compiles(change.before)


def require_sound(plan: Plan) -> None:
    """Raise Unsound where a change would lose bytes outside its edit, or break the file.

    Asked for only before a plan is carried out: written, proved or made a patch. A file that loses
    anything is parsed and printed once more, which takes as long as planning the change.
    """
    for change in plan.changes:
        if not change.path.endswith(".py"):
            continue  # an installed package's RECORD
        kept = only_adds(change.before, change.after)
        if not kept and not survives_parsing(change.before):
            raise Unsound(f"{change.path}: parsing it would change bytes outside the edit")
        if breaks(change):
            raise Unsound(f"{change.path}: the rewritten file would not parse")
