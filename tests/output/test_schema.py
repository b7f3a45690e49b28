"""Every JSON output is as docs/schema.json says."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from codemods.engine.plan import Reason, Status, Verdict
from codemods.prove import proof_process
from codemods.recipes.slot_mapping import proofs
from tests.forks.trees import fork
from tests.prove.forked import needs_the_verify_extra, run_worker
from tests.releases.trees import run

SCHEMA: dict[str, Any] = json.loads(
    (Path(__file__).parents[2] / "docs" / "schema.json").read_text("utf-8")
)
FORKS = (
    "00-no-monitor",  # fixable
    "03-fix-in-place",  # already-fixed
    "00-kernel-class",  # superseded
    "02-native-op-only",  # not-affected
    "09-return-inside-the-branch",  # refused
)


def validate(text: bytes) -> None:
    jsonschema.Draft202012Validator(SCHEMA).validate(json.loads(text))


@pytest.mark.parametrize("name", FORKS)
@pytest.mark.parametrize("verb", ["check", "diff", "apply"])
def test_what_a_verb_prints_is_valid(name: str, verb: str, tmp_path: Path) -> None:
    root = fork(name).tree.write_to(tmp_path)
    validate(run(verb, root, "--json", "--recipe", "all").stdout)


@needs_the_verify_extra
def test_what_verify_prints_is_valid(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(proof_process, "run_worker", run_worker)
    with_figures = [row for row in proofs.PROOFS if row.name in ("order", "keys", "state")]
    monkeypatch.setattr(proofs, "PROOFS", with_figures)
    root = fork("00-no-monitor").tree.write_to(tmp_path)
    validate(run("verify", root, "--json", "--target", "cuda:90").stdout)


def test_the_schema_refuses_a_key_that_it_does_not_know(tmp_path: Path) -> None:
    root = fork("00-no-monitor").tree.write_to(tmp_path)
    document = json.loads(run("check", root, "--json").stdout)
    with pytest.raises(jsonschema.ValidationError):
        validate(json.dumps({**document, "edits": []}).encode())


def test_the_schema_knows_every_status_reason_and_verdict() -> None:
    edit = SCHEMA["$defs"]["edit"]["properties"]
    assert set(edit["status"]["enum"]) == {status.value for status in Status}
    assert set(edit["reason"]["enum"]) == {reason.value for reason in Reason}
    assert set(SCHEMA["$defs"]["verdict"]["enum"]) == {verdict.value for verdict in Verdict}
