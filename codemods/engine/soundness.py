"""What must hold of a change before it is carried out, whichever recipe made it."""

from __future__ import annotations

from codemods.engine.hunks import only_adds
from codemods.engine.plan import Plan
from codemods.transforms.source import survives_parsing


class Unsound(Exception):
    """A change that must not be made; the message is one line that names the file."""


def require_sound(plan: Plan) -> None:
    """Raise Unsound where a change would lose bytes outside its edit.

    Asked for only before a plan is carried out: written, proved or made a patch. A file that loses
    anything is parsed and printed once more, which takes as long as planning the change. A change
    that breaks its file never gets here: the plan refuses it.
    """
    for change in plan.changes:
        if not change.path.endswith(".py"):
            continue  # an installed package's RECORD
        kept = only_adds(change.before, change.after)
        if not kept and not survives_parsing(change.before):
            raise Unsound(f"{change.path}: parsing it would change bytes outside the edit")
