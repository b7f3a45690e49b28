"""A real release: every proof holds, and says what it said when it was measured by hand."""

from __future__ import annotations

import pytest

from codemods.engine.checkout import Checkout
from codemods.engine.planning import make_plan
from codemods.prove import Options, ProofStatus, prove
from codemods.release import UnreachableError, fetch


@pytest.mark.network
def test_every_proof_of_a_release_holds() -> None:
    pytest.importorskip("torch", reason="needs the verify extra")
    pytest.importorskip("triton", reason="needs the verify extra")
    try:
        tree = fetch("0.21.0")
    except UnreachableError as error:
        pytest.skip(str(error))
    plan = make_plan(Checkout.find(tree))
    rows = {row.name: row for row in prove(plan, Options(targets=("cuda:90", "hip:gfx942")))}
    assert {row.status for row in rows.values()} == {ProofStatus.PASS}, rows
    assert (rows["keys"].figures["keys_before"], rows["keys"].figures["keys_after"]) == (3, 1)
    binaries = rows["compile"].figures
    assert (binaries["cuda:90 binaries before"], binaries["cuda:90 binaries after"]) == (6, 2)
    assert int(binaries["cuda:90 registers after"]) <= int(binaries["cuda:90 registers before"])
