"""One function for each verb. They print and pick the exit code, and decide nothing.

Modules that only one verb needs are imported by it, so that `check` starts fast.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from codemods.cli import exits, streams
from codemods.cli.exits import (
    FAILED,
    INTERRUPTED,
    NOTHING,
    REFUSED,
    USAGE,
    WOULD_CHANGE,
    WRITE_FAILED,
    Stop,
)
from codemods.cli.options import Verb
from codemods.cli.planned import Planned, planned
from codemods.engine.checkout import UsageError
from codemods.engine.files import Disk, UnreadableFile
from codemods.engine.plan import FileChange, Plan, Verdict
from codemods.output.table import headline, table

if TYPE_CHECKING:
    from codemods.prove.proof import Proof


def check(options: argparse.Namespace) -> int:
    """Print what each edit would do, and why."""
    if options.json and options.format == "markdown":
        raise UsageError("--json and --format markdown are two outputs: name one")
    if options.ref:
        from codemods.cli.planned_refs import are_several, planned_refs

        with planned_refs(options) as found:
            plans = [one.plan for one in found]
        if are_several(options):
            return _check_several(plans, options)
        return _check(plans[0], options)
    return _check(planned(options).plan, options)


def _check(plan: Plan, options: argparse.Namespace) -> int:
    if options.format == "markdown":
        from codemods.output.markdown import markdown

        streams.write(markdown(plan))
    else:
        _show(plan, options)
    exits.raise_if_refused(plan)
    exits.raise_if_unmet([plan], options)
    return WOULD_CHANGE if plan.changes else NOTHING


def _check_several(plans: list[Plan], options: argparse.Namespace) -> int:
    """A row for each tree, and the worst exit code."""
    from codemods.output import trees

    if options.json:
        streams.write(trees.as_json(plans))
    elif options.format == "markdown":
        streams.write(trees.markdown(plans))
    else:
        streams.write(trees.table(plans, width=streams.width(sys.stdout)))
    if any(plan.refusals for plan in plans):
        return REFUSED
    exits.raise_if_unmet(plans, options)
    return WOULD_CHANGE if any(plan.changes for plan in plans) else NOTHING


def diff(options: argparse.Namespace) -> int:
    """Print the patch that apply would make, and only that, on stdout or into a file."""
    with _one_planned(options) as found:
        return _diff(found.plan, options)


def _diff(plan: Plan, options: argparse.Namespace) -> int:
    if options.json:
        _show(plan, options)
    else:
        sys.stderr.write(_table(plan, sys.stderr))
    exits.raise_if_refused(plan)
    exits.raise_if_unmet([plan], options)
    exits.raise_if_unsound(plan)
    if options.output and not plan.changes:
        streams.log("there is nothing to change, so no patch is written")
        return NOTHING
    series = _patches(plan, options)
    if options.output:
        _write_patches(series, options.output)
    elif not options.json:
        from codemods.output.pager import show
        from codemods.output.patch import mailbox

        try:
            sys.stdout.flush()
            show(plan, mailbox(series), sys.stdout.buffer)
        except BrokenPipeError:  # the reader of the patch has had enough
            streams.drop_stdout()
        except OSError as error:
            raise streams.undelivered(error) from None
    return NOTHING


def apply(options: argparse.Namespace) -> int:
    """Rewrite the tree, all files or none."""
    if options.dry_run:
        return diff(options)
    if options.release:
        raise UsageError("apply rewrites a tree of yours: name it in place of --release")
    asked = (options.output, options.author, options.date, options.subject)
    if any(asked) or options.format != "unified":
        raise UsageError(
            "apply writes no patch: --format, -o, --author, --date and --subject need --dry-run"
        )
    from codemods.write import WriteFailed, remove_leftovers, write

    plan = planned(options).plan
    changes = plan.changes
    if options.update_record:
        from codemods.write.record import with_record

        changes = with_record(plan)
    if not plan.refusals:
        exits.raise_if_unmet([plan], options)
    exits.raise_if_unsound(plan)
    if not plan.refusals:
        remove_leftovers(plan.tree.root, plan.named_files)
    if plan.refusals or not changes:
        _show(plan, options)
        exits.raise_if_refused(plan)
        return NOTHING
    if not options.allow_dirty:
        exits.raise_if_dirty(plan.tree.root, changes)
    try:
        write(plan.tree.root, sorted(changes, key=lambda change: change.rank))
        _show(plan.carried_out(), options, done=True)
        streams.write("", now=True)
    except WriteFailed as error:
        raise Stop(WRITE_FAILED, str(error)) from None
    except KeyboardInterrupt:  # the write is complete or undone by then
        raise Stop(INTERRUPTED, f"interrupted; {_written(plan.tree.root, changes)}") from None
    except OSError as error:
        streams.drop_stdout()
        why = error.strerror or error
        raise Stop(USAGE, f"standard output: {why}; {_written(plan.tree.root, changes)}") from None
    return NOTHING


def verify(options: argparse.Namespace) -> int:
    """Prove the rewrite, a row for each proof."""
    with _one_planned(options) as found:
        return _verify(found, options)


def _verify(found: Planned, options: argparse.Namespace) -> int:
    from codemods.output.proofs import (
        how_to_install,
        proof_count,
        proof_document,
        proof_lines,
    )
    from codemods.prove.proof import Options, ProofStatus
    from codemods.prove.rows import rows

    plan = found.plan
    exits.raise_if_refused(plan)
    if plan.verdict in (Verdict.SUPERSEDED, Verdict.NOT_AFFECTED) and not plan.changes:
        _show(plan, options, proofs=[])
        streams.log("there is no rewrite to prove")
        return NOTHING
    if not options.json:
        streams.write(f"{headline(plan)}\n", now=True)
    wanted = Options(
        targets=tuple(options.target or Options().targets),
        mypy=options.mypy,
        timeout=options.timeout,
        gpu=options.gpu,
    )
    done: list[tuple[str | None, Proof]] = []
    recipe: str | None = None
    for subject, row in rows(plan, found.checkout, wanted):
        if subject.recipe is not None and subject.recipe.recipe != recipe:
            recipe = subject.recipe.recipe
            if len(plan.recipes) > 1 and not options.json:
                streams.write(f"{recipe}:\n")
        streams.progress(row.name)
        proof = row.prove(subject, wanted)
        streams.progress(None)
        done.append((recipe, proof))
        if not options.json:
            width = streams.width(sys.stdout)
            streams.write(proof_lines(proof, width=width, verbose=options.verbose), now=True)
    proofs = [proof for _, proof in done]
    if options.json:
        _show(plan, options, proofs=[proof_document(name, proof) for name, proof in done])
    hint = how_to_install(proofs)
    if hint is not None:
        streams.log(hint)
    if not options.json:
        streams.write(proof_count(proofs, strict=options.strict))
    failing = {ProofStatus.FAIL, *([ProofStatus.SKIPPED] if options.strict else [])}
    return FAILED if any(proof.status in failing for proof in proofs) else NOTHING


VERBS: Mapping[str, Verb] = {"check": check, "diff": diff, "apply": apply, "verify": verify}


@contextmanager
def _one_planned(options: argparse.Namespace) -> Iterator[Planned]:
    """The plan of TREE, a release or one ref."""
    refs = options.ref or []  # apply has none
    if not refs:
        yield planned(options)
        return
    from codemods.cli.planned_refs import are_several, planned_refs

    if are_several(options):
        raise UsageError("several refs are for check: name one --ref, and no pattern")
    with planned_refs(options) as found:
        yield found[0]


def _show(plan: Plan, options: argparse.Namespace, *, done: bool = False, **more: Any) -> None:
    if options.json:
        from codemods.output.document import as_json

        streams.write(as_json(plan, **more))
    else:
        streams.write(_table(plan, sys.stdout, done=done))


def _table(plan: Plan, out: TextIO, *, done: bool = False) -> str:
    """The table for `out`, without what its reader gets on stderr."""
    return table(
        plan,
        width=streams.width(out),
        colour=streams.colour(out),
        done=done,
        refusals=not streams.read_with_stderr(out),
    )


def _patches(plan: Plan, options: argparse.Namespace) -> tuple[tuple[str, bytes], ...]:
    from codemods.output import patch

    try:
        if options.format == "unified":
            return (("changes.patch", patch.unified(plan)),)
        from codemods.output.mail import mail_for

        mail = mail_for(plan, author=options.author, date=options.date, subject=options.subject)
        return patch.mails(plan, mail, dep3=options.format == "dep3")
    except patch.DoesNotApply as error:
        raise Stop(REFUSED, str(error)) from None


def _write_patches(series: tuple[tuple[str, bytes], ...], output: str) -> None:
    from codemods.output.patch import mailbox
    from codemods.write.files import put

    into = Path(output)
    files = [(into, mailbox(series))]
    if output.endswith("/") or into.is_dir():
        files = [(into / name, mail) for name, mail in series]
    try:
        if output.endswith("/"):
            into.mkdir(exist_ok=True)
        for into, data in files:
            put(into, data)
    except OSError as error:
        raise UsageError(f"{into}: {error.strerror}") from None


def _written(root: Path, changes: Iterable[FileChange]) -> str:
    files = Disk(root)
    try:
        done = all(files.read(change.path) == change.after for change in changes)
    except UnreadableFile:
        done = False
    return "every file is rewritten" if done else "nothing was written"
