"""A real vLLM tree on a real GPU, before and after the rewrite: `make gpu-test TREE=…`.

Every case serves a tiny model with the tree's own server. A test that fails says which side did
what; `make gpu-test` prints the table of all at the end.
"""

from __future__ import annotations

import pytest
import runs
import suites
from cases import BEFORE, BOTH, KV_BLOCK_ZEROING, ONE, SLOT_MAPPING, Case
from users_tree import Session

pytestmark = pytest.mark.gpu
APPLIED = {BEFORE: (), ONE: (SLOT_MAPPING,), BOTH: (SLOT_MAPPING, KV_BLOCK_ZEROING)}


def started(session: Session, case: Case) -> dict[str, runs.Result]:
    """The case's results; skips a case that the tree does not serve before the rewrite either."""
    results = session.served(case)
    session.lines += [runs.row(result) for result in results.values()]
    before = results[BEFORE]
    if before.get("start_s") is None:
        pytest.skip(f"the tree as it is does not serve this: {last_line(before)}")
    return results


def test_the_rewrite_serves_the_same_and_requests_compile_nothing(
    session: Session, case: Case
) -> None:
    results = started(session, case)
    before = results[BEFORE]
    assert set(runs.statuses(before)) == {200}
    for side, result in results.items():
        assert result["start_s"] is not None, f"{side} does not start: {result['error'][-2000:]}"
        assert set(runs.statuses(result)) == {200}, runs.row(result)
        assert runs.differing(before, result) == [], f"{side} answers otherwise"
        for recipe in APPLIED[side]:
            assert runs.compiled(result, recipe, "requests") == 0, runs.row(result)
            assert runs.named(result, recipe) == 0, runs.row(result)


def test_the_fault_is_there_before_or_the_tree_says_why_not(session: Session) -> None:
    missing = []
    for recipe, verdict in session.copies.verdicts.items():
        cases = [case for case in session.cases if recipe in case.recipes]
        befores = [session.served(case)[BEFORE] for case in cases]
        counts = [runs.compiled(b, recipe, "requests") for b in befores if b.get("requests")]
        if verdict == "fixable":
            assert counts, f"no server shows {recipe}"
            if sum(counts) == 0:
                missing.append(f"{recipe}: no case served here shows it")
        else:
            assert sum(counts) == 0, f"{recipe} is {verdict}, and requests compile: {counts}"
            missing.append(f"{recipe}: the tree is {verdict}")
    if len(missing) == len(session.copies.verdicts):
        pytest.skip("; ".join(missing) + f" {session.copies.why}")


def test_vllms_own_tests_pass_as_before(session: Session) -> None:
    if "tests/before" not in session.futures:
        pytest.skip("run with one GPU")
    before, after = session.result("tests/before"), session.result(last(session, "tests"))
    session.lines += [suites.row(before), suites.row(after)]
    if not before["modules"]:
        pytest.skip(before["error"])
    if "error" in before:
        pytest.skip(f"they do not run before the rewrite either: {last_line(before)}")
    assert "error" not in after, after["error"]
    assert suites.broken(before, after) == []


def test_a_live_batch_goes_on_as_if_undisturbed(session: Session) -> None:
    """The warm-up runs again on live workers under elastic expert parallelism."""
    if "live/before" not in session.futures:
        pytest.skip("run with one GPU")
    before, after = session.result("live/before"), session.result(last(session, "live"))
    session.lines += [suites.row(before), suites.row(after)]
    if "error" in before:
        pytest.skip(f"it does not run before the rewrite either: {last_line(before)}")
    assert "error" not in after, after["error"]
    assert after["runs"]["called again"]["differing"] == 0


def test_the_tools_own_proofs_hold_on_the_gpu(session: Session, tmp_path_factory) -> None:  # type: ignore[no-untyped-def]
    if session.copies.last is session.before:
        pytest.skip("there is no rewrite to prove")
    from trees import recipe_options

    work = tmp_path_factory.mktemp("verify")
    proved = suites.gpu_proofs(session.before, work, recipe_options(BOTH), 300.0)
    session.lines.append(suites.row(proved))
    assert "error" not in proved, proved["error"]
    bad = [row for row in proved["verify"]["proofs"] if row["status"] == "fail"]
    assert bad == []


def last_line(result: runs.Result) -> str:
    return str(result.get("error", "")).strip().rpartition("\n")[2][-200:]


def last(session: Session, what: str) -> str:
    return f"{what}/{session.copies.last.side}"
