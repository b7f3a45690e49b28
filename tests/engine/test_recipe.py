"""A run of a recipe: what it keeps of each edit, and how edits of one file come together."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import libcst as cst
import pytest

from codemods.engine.checkout import Checkout
from codemods.engine.plan import About, Outcome, Plan, Reason, Status, Verdict
from codemods.engine.planning import make_plan
from codemods.engine.recipe import Recipe, Run
from codemods.engine.sources import Edited, Refusal, SourceFile
from codemods.transforms import source
from codemods.transforms.statements import append
from tests.checkouts import checkout

FILE = "v1/a.py"
NAME = f"vllm/{FILE}"
ABOUT = About("Toys", "Add toys", "https://example.invalid/1")
Decide = Callable[[Run], None]


def recipe(decide: Decide, *edits: str) -> Recipe:
    return Recipe(
        name="toys",
        about=ABOUT,
        edits=edits or ("first", "second"),
        writes=edits or ("first", "second"),
        means={Reason.NO_KERNEL: Verdict.NOT_AFFECTED},
        reads=(r"v1/a\.py",),
        decide=decide,
    )


def planned(home: Checkout, decide: Decide, *only: str) -> Plan:
    return make_plan(home, [recipe(decide)], only=frozenset(only))


@pytest.fixture
def home(tmp_path: Path) -> Checkout:
    return checkout(tmp_path, {FILE: "a = 1\n"})


def read(run: Run) -> SourceFile:
    file = run.sources.read(FILE)
    assert file is not None
    return file


def outcome(edit: str, status: Status = Status.EDIT, reason: Reason = Reason.ADDED) -> Outcome:
    return Outcome(edit, status, reason, f"about {edit}", NAME)


def add(run: Run, edit: str, text: str) -> None:
    """An edit that puts a function at the end of the file."""
    file = read(run)
    run.take(Edited(outcome(edit), append(file.module, text), marker=text.split(":")[0]), file)


def add_both(run: Run) -> None:
    add(run, "first", "def f():\n    return 1\n")
    add(run, "second", "def g():\n    return 2\n")
    run.why = "It has no toys."


def test_edits_of_one_file_are_both_in_it(home: Checkout) -> None:
    plan = planned(home, add_both)
    (change,) = plan.changes
    assert change.before == b"a = 1\n"
    assert change.after == b"a = 1\n\n\ndef f():\n    return 1\n\n\ndef g():\n    return 2\n"
    assert change.edits == ("first", "second")
    assert [one.line for one in plan.outcomes] == [4, 8]


def test_an_edit_above_moves_the_line_of_an_earlier_one(home: Checkout) -> None:
    def decide(run: Run) -> None:
        add(run, "first", "def f():\n    return 1\n")
        file = read(run)
        body = [*cst.parse_module("b = 0\n").body, *file.module.body]
        run.take(Edited(outcome("second"), file.module.with_changes(body=body)), file)

    assert [one.line for one in planned(home, decide).outcomes] == [5, 1]


def test_a_later_edit_of_a_file_as_it_was_is_no_edit(home: Checkout) -> None:
    def decide(run: Run) -> None:
        file = read(run)
        for edit, text in (("first", "def f(): ...\n"), ("second", "def g(): ...\n")):
            run.take(Edited(outcome(edit), append(file.module, text), marker="def"), file)

    with pytest.raises(AssertionError, match="read before an earlier edit"):
        planned(home, decide)


@pytest.mark.parametrize("only", ["first", "second"])
def test_an_edit_that_is_not_wanted_changes_nothing(only: str, home: Checkout) -> None:
    plan = planned(home, add_both, only)
    (change,) = plan.changes
    assert (b"def f" in change.after, b"def g" in change.after) == (
        only == "first",
        only == "second",
    )
    assert [one.edit for one in plan.outcomes] == [only]


def test_a_refusal_of_one_edit_leaves_the_others_listed_and_nothing_changed(home: Checkout) -> None:
    def decide(run: Run) -> None:
        with run.edit("first"):
            raise Refusal(Reason.NO_ANCHOR, "no place", NAME, 3)
        with run.edit("second"):
            add(run, "second", "def g(): ...\n")

    plan = planned(home, decide)
    assert plan.outcomes == (
        Outcome("first", Status.REFUSED, Reason.NO_ANCHOR, "no place", NAME, 3),
        Outcome("second", Status.EDIT, Reason.ADDED, "about second", NAME, 4),
    )
    assert (plan.verdict, plan.changes, plan.recipes[0].why) == (Verdict.REFUSED, (), "no place")


def test_a_refusal_outside_of_an_edit_is_of_all_that_have_no_outcome(home: Checkout) -> None:
    def decide(run: Run) -> None:
        add(run, "first", "def f(): ...\n")
        raise Refusal(Reason.AMBIGUOUS, "two of them", NAME)

    found = [(one.edit, one.status) for one in planned(home, decide).outcomes]
    assert found == [("first", Status.EDIT), ("second", Status.REFUSED)]


@pytest.mark.parametrize("inside", [True, False])
def test_a_walk_that_goes_too_deep_is_a_refusal(inside: bool, home: Checkout) -> None:
    def decide(run: Run) -> None:
        if not inside:
            raise RecursionError
        with run.edit("first", NAME):
            raise RecursionError

    first = planned(home, decide).outcomes[0]
    assert (first.status, first.reason) == (Status.REFUSED, Reason.UNPARSABLE)
    assert first.file == (NAME if inside else None)


@pytest.mark.parametrize("text", ["a = 1\n\x0c\n", "a = 1\n    \n"])
def test_white_space_that_parsing_would_lose_refuses_the_edit(text: str, tmp_path: Path) -> None:
    data = text.encode()
    file = SourceFile(NAME, data)
    run = Run(recipe(add_both), None, frozenset({"first"}))  # type: ignore[arg-type]
    module = cst.parse_module(data.replace(b"\x0c", b"").replace(b"    \n", b""))
    with pytest.raises(Refusal, match="white space"):
        run.take(Edited(outcome("first"), module), file)
    assert run.outcomes == ()


def test_syntax_that_is_newer_than_this_python_refuses_the_edit(
    home: Checkout, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(source, "syntax_tree", lambda data: None)
    plan = planned(home, add_both)
    assert not plan.changes
    assert [(one.reason, one.file) for one in plan.outcomes] == [(Reason.UNPARSABLE, NAME)] * 2
    assert "newer Python" in plan.outcomes[0].detail


def test_a_change_that_would_not_parse_is_refused(home: Checkout) -> None:
    def decide(run: Run) -> None:
        file = read(run)
        broken = file.module.with_changes(
            body=[cst.SimpleStatementLine([cst.Expr(cst.Name("class"))])]
        )
        run.take(Edited(outcome("first"), broken), file)

    plan = planned(home, decide)
    assert [(one.status, one.reason) for one in plan.outcomes] == [
        (Status.REFUSED, Reason.UNPARSABLE)
    ]
    assert plan.changes == ()


def test_every_edit_can_end_alike(home: Checkout) -> None:
    def decide(run: Run) -> None:
        run.why = "There is nothing here."
        run.every_edit(Status.NOT_NEEDED, Reason.NO_KERNEL, run.why, None)

    plan = planned(home, decide)
    assert {(one.status, one.reason) for one in plan.outcomes} == {
        (Status.NOT_NEEDED, Reason.NO_KERNEL)
    }
    assert (plan.verdict, plan.changes) == (Verdict.NOT_AFFECTED, ())


def test_what_is_there_is_in_force_though_it_is_not_wanted(home: Checkout) -> None:
    seen = []

    def decide(run: Run) -> None:
        run.add(outcome("first", Status.PRESENT, Reason.ALREADY_PRESENT))
        seen.extend([run.is_present("first"), run.in_force("first"), run.in_force("second")])
        add(run, "second", "def g(): ...\n")
        seen.extend([run.is_present("second"), run.in_force("second")])

    assert [one.edit for one in planned(home, decide, "second").outcomes] == ["second"]
    assert seen == [True, True, False, False, True]


@pytest.mark.parametrize(("reason", "ranks"), [(Reason.ADDED, [0, 1]), (Reason.REMOVED, [0, -1])])
def test_what_is_removed_is_written_in_the_other_order(
    reason: Reason, ranks: list[int], tmp_path: Path
) -> None:
    home = checkout(tmp_path, {FILE: "a = 1\n", "v1/b.py": "b = 1\n"})

    def decide(run: Run) -> None:
        for edit, relative in (("first", FILE), ("second", "v1/b.py")):
            file = run.sources.read(relative)
            assert file is not None
            made = append(file.module, "def f(): ...\n")
            found = Outcome(edit, Status.EDIT, reason, "", file.name)
            run.take(Edited(found, made, marker="def"), file)

    assert [change.rank for change in planned(home, decide).changes] == ranks


def test_the_mode_of_a_file_is_the_disks(home: Checkout, tmp_path: Path) -> None:
    (tmp_path / NAME).chmod(0o755)
    assert [change.mode for change in planned(home, add_both).changes] == ["100755"]
