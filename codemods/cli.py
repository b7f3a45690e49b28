"""The command line: one small function for each verb. No decisions.

Modules that only one verb needs are imported by it, so that `check` starts fast.
"""

from __future__ import annotations

import argparse
import gc
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from codemods import report, stops, streams
from codemods.checkout import AmbiguousPackage, Checkout, UsageError
from codemods.options import parser
from codemods.outcome import EditName, FileChange, Outcome, Plan, Reason, Status, Tree, Verdict
from codemods.plan import make_plan
from codemods.stops import (
    FAILED,
    INTERRUPTED,
    NOTHING,
    REFUSED,
    USAGE,
    WOULD_CHANGE,
    WRITE_FAILED,
    Stop,
)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; the exit code is returned, also for wrong usage."""
    streams.prepare()
    code = _run(argv)
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        streams.give_stdout_up()
    except OSError as error:
        streams.say(f"standard output: {error.strerror or error}")
        streams.give_stdout_up()
        return USAGE
    return code


def _run(argv: Sequence[str] | None) -> int:
    try:
        options = parser(VERBS).parse_args(argv)
        return int(options.run(options))
    except SystemExit as error:
        return error.code if isinstance(error.code, int) else USAGE
    except Stop as stop:
        streams.say(*stop.lines)
        return stop.code
    except UsageError as error:
        streams.say(str(error))
        return USAGE
    except KeyboardInterrupt:
        streams.say("interrupted; nothing was written")
        return INTERRUPTED
    except BrokenPipeError:  # the reader of a patch has had enough
        streams.give_stdout_up()
        return NOTHING
    except OSError as error:
        streams.say(f"{error.filename or 'standard output'}: {error.strerror or error}")
        streams.give_stdout_up()
        return USAGE


def check(options: argparse.Namespace) -> int:
    """Print what each edit would come to."""
    if options.json and options.format == "markdown":
        raise UsageError("--json and --format markdown are two outputs: name one")
    plan = _plan(options)
    if options.json:
        streams.show(report.as_json(plan))
    elif options.format == "markdown":
        from codemods.markdown import markdown

        streams.show(markdown(plan))
    else:
        streams.show(report.table(plan, colour=streams.colour(sys.stdout)))
    stops.where_refused(plan)
    stops.where_unmet(plan, options)
    return WOULD_CHANGE if plan.verdict is Verdict.FIXABLE else NOTHING


def diff(options: argparse.Namespace) -> int:
    """Print the patch that apply would make, and only that, on stdout or into a file."""
    plan = _plan(options)
    if options.json:
        streams.show(report.as_json(plan))
    else:
        sys.stderr.write(report.table(plan, colour=streams.colour(sys.stderr)))
    stops.where_refused(plan)
    stops.where_unmet(plan, options)
    stops.where_unsound(plan)
    if options.output and not plan.changes:
        streams.say("there is nothing to change: no patch is written")
        return NOTHING
    patch = _patch(plan, options)
    if options.output:
        try:
            Path(options.output).write_bytes(patch)
        except OSError as error:
            raise UsageError(f"{options.output}: {error.strerror}") from None
    elif not options.json:
        from codemods.pager import show

        sys.stdout.flush()
        show(plan, patch, sys.stdout.buffer)
    return NOTHING


def apply(options: argparse.Namespace) -> int:
    """Rewrite the tree, all files or none."""
    if options.dry_run:
        return diff(options)
    if options.release:
        raise UsageError("apply rewrites a tree of yours: name it in place of --release")
    if options.output or options.author or options.date or options.subject:
        raise UsageError("apply writes no patch: -o and the mailbox's options need --dry-run")
    from codemods.write import WriteFailed, remove_leftovers, write

    plan = _plan(options)
    if options.update_record:
        from codemods.record import with_record

        plan = with_record(plan)
    if not plan.refusals:
        stops.where_unmet(plan, options)
    stops.where_unsound(plan)
    if not plan.refusals:
        remove_leftovers(plan.tree.root, _files(plan))
    if plan.refusals or not plan.changes:
        _show_applied(plan, options)
        stops.where_refused(plan)
        return NOTHING
    if not options.allow_dirty:
        stops.where_dirty(plan)
    try:
        write(plan.tree.root, _in_order(plan))
        _show_applied(Plan(plan.tree, plan.outcomes, plan.changes, Verdict.FIXED), options)
    except WriteFailed as error:
        raise Stop(WRITE_FAILED, str(error)) from None
    except KeyboardInterrupt:  # the write has come to a good end by then
        raise Stop(INTERRUPTED, f"interrupted; {_written(plan)}") from None
    return NOTHING


def verify(options: argparse.Namespace) -> int:
    """Prove the rewrite, a row for each proof."""
    from codemods.verify import Options, ProofStatus, proofs, prove

    plan = _plan(options)
    stops.where_refused(plan)
    if plan.verdict in (Verdict.SUPERSEDED, Verdict.NOT_AFFECTED):
        if options.json:
            streams.show(report.as_json(plan, proofs=[]))
        else:
            streams.show(report.table(plan, colour=streams.colour(sys.stdout)))
        streams.say("there is no rewrite to prove")
        return NOTHING
    wanted = Options(
        targets=tuple(options.target or Options().targets),
        mypy=options.mypy,
        timeout=options.timeout,
        gpu=options.gpu,
    )
    done = []
    running = iter(proofs(wanted))
    streams.progress(next(running, None))
    for proof in prove(plan, wanted):
        done.append(proof)
        streams.progress(None)
        if not options.json:
            streams.show(f"{proof.name:8} {proof.status.value:8} {proof.detail}\n")
            if proof.figures:
                figures = ", ".join(f"{key} {value}" for key, value in proof.figures.items())
                streams.show(f"{'':17} {figures}\n")
            sys.stdout.flush()
        streams.progress(next(running, None))
    streams.progress(None)
    if options.json:
        rows = [
            {
                "proof": proof.name,
                "status": proof.status.value,
                "detail": proof.detail,
                "figures": dict(proof.figures),
            }
            for proof in done
        ]
        streams.show(report.as_json(plan, proofs=rows))
    return FAILED if any(proof.status is ProofStatus.FAIL for proof in done) else NOTHING


VERBS = {"check": check, "diff": diff, "apply": apply, "verify": verify}


def _plan(options: argparse.Namespace) -> Plan:
    if (options.tree is None) == (options.release is None):
        raise UsageError("name a TREE or a --release, and not both")
    root = _release(options.release) if options.release else Path(options.tree)
    only = frozenset(map(EditName, options.only))
    skip = frozenset(map(EditName, options.skip))
    wanted = (only or frozenset(EditName)) - skip
    if not wanted:
        raise UsageError("--only and --skip leave no edit to make")
    try:
        checkout = Checkout.find(root, options.package)
    except AmbiguousPackage as error:
        return _ambiguous(root, str(error), wanted)
    with _no_collection():
        return make_plan(checkout, only=only, skip=skip)


@contextmanager
def _no_collection() -> Iterator[None]:
    """Pause the collector: trees only grow while a plan is made, and it visits each again."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def _ambiguous(root: Path, detail: str, wanted: frozenset[EditName]) -> Plan:
    outcomes = tuple(
        Outcome(edit, Status.REFUSED, Reason.AMBIGUOUS, detail)
        for edit in EditName
        if edit in wanted
    )
    return Plan(Tree(root, "."), outcomes, (), Verdict.REFUSED)


def _release(version: str) -> Path:
    from codemods.release import ReleaseError, fetch

    try:
        return fetch(version)
    except ReleaseError as error:
        raise UsageError(str(error)) from None


def _files(plan: Plan) -> list[str]:
    """Every file that the plan names, changed or not."""
    named = [outcome.file for outcome in plan.outcomes if outcome.file is not None]
    return [*named, *(change.path for change in plan.changes)]


def _in_order(plan: Plan) -> list[FileChange]:
    """The changes in an order in which every prefix is a tree that works; a RECORD comes last."""
    order = (EditName.KERNEL, EditName.WARMUP, EditName.UNIT_TESTS, EditName.WORKER)
    return sorted(
        plan.changes,
        key=lambda change: max(map(order.index, change.edits), default=len(order)),
    )


def _written(plan: Plan) -> str:
    done = all(
        (plan.tree.root / change.path).read_bytes() == change.after for change in plan.changes
    )
    return "every file is rewritten" if done else "nothing was written"


def _patch(plan: Plan, options: argparse.Namespace) -> bytes:
    from codemods import patch
    from codemods.landing import lands

    if options.format == "unified":
        made = patch.unified(plan)
    else:
        from codemods.mail import mail_for

        mail = mail_for(plan, author=options.author, date=options.date, subject=options.subject)
        made = (patch.git_mailbox if options.format == "git" else patch.dep3)(plan, mail)
    if not lands(plan, made):
        raise Stop(REFUSED, "the patch, applied to a copy, does not give the bytes of apply")
    return made


def _show_applied(plan: Plan, options: argparse.Namespace) -> None:
    if options.json:
        streams.show(report.as_json(plan))
    else:
        streams.show(report.table(plan, colour=streams.colour(sys.stdout)))
