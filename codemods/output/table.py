"""A plan as a table for people."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from codemods.engine.plan import About, Outcome, Plan, RecipePlan, Status, Verdict

NAME = "vllm-codemods"
NARROWEST = 40  # columns; a terminal that says it has fewer is taken for one of these
_HEADER = ("edit", "status", "reason", "where", "detail")
_COLOURS = {
    Status.EDIT: "\033[32m",
    Status.PRESENT: "\033[36m",
    Status.NOT_NEEDED: "\033[2m",
    Status.REFUSED: "\033[31m",
}
_RESET = "\033[0m"


def version() -> str:
    """The installed distribution's version, "unknown" when it runs uninstalled."""
    from importlib import metadata

    try:
        return metadata.version(NAME)
    except metadata.PackageNotFoundError:
        return "unknown"


def printable(text: str) -> str:
    """The text in one line, what a terminal would act on written as Python escapes it."""
    return "".join(one if one.isprintable() else ascii(one)[1:-1] for one in text)


def table(
    plan: Plan,
    *,
    width: int | None = None,
    colour: bool = False,
    done: bool = False,
    refusals: bool = True,
) -> str:
    """The tree's verdict, then each recipe's with its reason and a line for each edit.

    `width` is the terminal's in columns, None for as wide as it takes; where a line for each edit
    does not fit, an edit gets several. `done` says that the changes were made. Without `refusals`
    the sentences of `refusal_lines` are left out, for a reader who gets those lines too.
    """
    width = None if width is None else max(width, NARROWEST)
    lines = [headline(plan)]
    for alike in _alike_recipes(plan.recipes):
        lines += _recipe(alike, width, colour, refusals)
    lines += _count(plan, done)
    return "\n".join(lines) + "\n"


def headline(plan: Plan) -> str:
    """The tree and its verdict."""
    return f"{tree_name(plan)}: {tree_verdict(plan)}"


def tree_verdict(plan: Plan) -> str:
    """The verdict, with the edits that it is of where a part of them was asked for."""
    return plan.verdict.value + _of_edits(plan.recipes)


def recipe_verdict(plan: RecipePlan) -> str:
    """The same of one recipe."""
    return plan.verdict.value + _of_edits([plan])


def _of_edits(plans: Iterable[RecipePlan]) -> str:
    """` (only worker)` or ` (without unit-tests)`, whichever names fewer; empty for all edits."""
    found = tuple(plans)
    left_out = dict.fromkeys(edit for one in found for edit in one.left_out)
    asked = dict.fromkeys(outcome.edit for one in found for outcome in one.outcomes)
    if not left_out:
        return ""
    if asked and len(asked) <= len(left_out):
        return f" (only {', '.join(asked)})"
    return f" (without {', '.join(left_out)})"


def tree_name(plan: Plan) -> str:
    """The tree in words: `vLLM 0.21.0 in vllm`, with the commit where it is known."""
    package = plan.tree.package
    name = package if package != "." else plan.tree.root.resolve().name
    known = [plan.tree.version, plan.tree.ref, plan.tree.commit and plan.tree.commit[:12]]
    return printable(" ".join(["vLLM", *filter(None, known), f"in {name}"]))


def why(plan: RecipePlan) -> str:
    """The recipe's reason; after the rewrite it is of the tree as it was.

    Empty for a refused one: its refused edits have it.
    """
    if plan.verdict is Verdict.REFUSED:
        return ""
    return f"Before: {plan.why}" if plan.why and plan.verdict is Verdict.FIXED else plan.why


def where(outcome: Outcome) -> str:
    """`FILE:LINE`, or as much of it as is known."""
    if outcome.file is None:
        return ""
    return outcome.file if outcome.line is None else f"{outcome.file}:{outcome.line}"


def refusal_lines(plan: Plan) -> list[str]:
    """A line for each refusal: where, which edits, why and what to do; the same refusal once."""
    found: dict[tuple[str, str, str], list[str]] = {}
    for outcome in plan.refusals:
        key = (where(outcome), outcome.reason.value, outcome.detail)
        found.setdefault(key, []).append(outcome.edit)
    return [
        f"{f'{place}: ' if place not in detail else ''}{', '.join(dict.fromkeys(edits))} refused "
        f"({reason}): {detail}"
        for (place, reason, detail), edits in found.items()
    ]


def _alike_recipes(plans: Iterable[RecipePlan]) -> list[list[RecipePlan]]:
    """The recipes' plans, those together that differ in the recipe alone."""
    found: dict[RecipePlan, list[RecipePlan]] = {}
    for plan in plans:
        same = replace(plan, recipe="", about=About("", "", ""), changes=())
        found.setdefault(same, []).append(plan)
    return list(found.values())


def _recipe(
    alike: list[RecipePlan], width: int | None, colour: bool, refusals: bool
) -> Iterator[str]:
    plan = alike[0]
    yield f"{', '.join(one.recipe for one in alike)}: {recipe_verdict(plan)}"
    said = why(plan)
    if said:
        yield from _wrapped(printable(said), width, "  ")
    edits = _edits_alike(plan.outcomes)
    rows = [_row(outcomes, said, refusals) for outcomes in edits]
    widths = [max(map(len, column)) for column in zip(_HEADER, *rows, strict=True)]
    fits = width is None or 2 * len(_HEADER) + sum(widths) <= width
    if fits:
        yield _line(_HEADER, widths)
    for row, outcomes in zip(rows, edits, strict=True):
        paint = _COLOURS[outcomes[0].status] if colour else ""
        yield from [_line(row, widths, paint)] if fits else _stacked(row, width, paint)


def _edits_alike(outcomes: Iterable[Outcome]) -> list[list[Outcome]]:
    """The outcomes, those that differ in the edit's name alone together."""
    found: dict[Outcome, list[Outcome]] = {}
    for outcome in outcomes:
        found.setdefault(replace(outcome, edit=""), []).append(outcome)
    return list(found.values())


def _row(outcomes: list[Outcome], said: str, refusals: bool) -> tuple[str, ...]:
    outcome = outcomes[0]
    elsewhere = outcome.detail == said or (outcome.status is Status.REFUSED and not refusals)
    return (
        ", ".join(one.edit for one in outcomes),
        outcome.status.value,
        outcome.reason.value,
        printable(where(outcome)) or "-",
        "" if elsewhere else printable(outcome.detail),
    )


def _line(row: tuple[str, ...], widths: list[int], paint: str = "") -> str:
    cells = [cell.ljust(width) for cell, width in zip(row, widths, strict=True)]
    cells[1] = _painted(cells[1], paint)
    return f"  {'  '.join(cells)}".rstrip()


def _stacked(row: tuple[str, ...], width: int | None, paint: str) -> Iterator[str]:
    edit, status, reason, place, detail = row
    yield f"  {edit}: {_painted(status, paint)} ({reason})"
    for text in (place if place != "-" else "", detail):
        yield from _wrapped(text, width, "    ")


def _wrapped(text: str, width: int | None, indent: str) -> list[str]:
    if width is None:
        return [indent + text]
    import textwrap  # only a terminal needs it

    return textwrap.wrap(
        text, width, initial_indent=indent, subsequent_indent=indent, break_on_hyphens=False
    )


def _painted(text: str, paint: str) -> str:
    return f"{paint}{text}{_RESET}" if paint else text


def _count(plan: Plan, done: bool) -> Iterator[str]:
    count = len(plan.changes)
    if count:
        files = f"{count} file{'s' if count > 1 else ''}"
        made = f"{files} rewritten" if done else f"{files} would change"
        yield made + _of_edits(plan.recipes)
