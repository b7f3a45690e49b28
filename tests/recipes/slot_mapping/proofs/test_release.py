"""A real release: every proof holds, and says what it said when it was measured by hand."""

from __future__ import annotations

import pytest

from codemods.engine import registry
from codemods.engine.checkout import Checkout
from codemods.engine.planning import make_plan
from codemods.prove import proof_process
from codemods.prove.proof import Options, ProofStatus
from codemods.prove.rows import prove
from codemods.release import UnreachableError, fetch
from tests.prove.forked import needs_the_verify_extra, run_worker


@pytest.mark.network
@needs_the_verify_extra
def test_every_proof_of_a_release_holds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(proof_process, "run_worker", run_worker)
    try:
        tree = fetch("0.21.0")
    except UnreachableError as error:
        pytest.skip(str(error))
    checkout = Checkout.find(tree)
    plan = make_plan(checkout, registry.chosen(()))
    options = Options(targets=("cuda:90", "hip:gfx942"))
    rows = {row.name: row for _, row in prove(plan, checkout, options)}
    assert {row.status for row in rows.values()} == {ProofStatus.PASS}, rows
    assert (rows["keys"].figures["keys_before"], rows["keys"].figures["keys_after"]) == (3, 1)
    binaries = rows["compile"].figures
    assert (binaries["cuda:90 binaries before"], binaries["cuda:90 binaries after"]) == (6, 2)
    assert int(binaries["cuda:90 registers after"]) <= int(binaries["cuda:90 registers before"])
