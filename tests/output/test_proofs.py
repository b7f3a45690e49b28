"""A proof's row for people and for scripts."""

from __future__ import annotations

import pytest

from codemods.output.proofs import how_to_install, proof_count, proof_document, proof_lines
from codemods.prove.proof import Proof, failed, passed, skipped

LONG = passed("order", "a detail of many words, " * 5 + "and an end", calls=2, share=0.5)


@pytest.mark.parametrize(
    ("proof", "line"),
    [
        (passed("order", "it is so"), "order        pass    it is so\n"),
        (failed("gpu-compiles", "it is not"), "gpu-compiles fail    it is not\n"),
        (skipped("keys", ""), "keys         skipped\n"),
        (failed("keys", "one\n\x1b[31m"), "keys         fail    one\\n\\x1b[31m\n"),
    ],
)
def test_a_row_is_a_line(proof: Proof, line: str) -> None:
    assert proof_lines(proof) == line


@pytest.mark.parametrize("width", [40, 60, 80])
def test_a_row_fits_its_terminal(width: int) -> None:
    lines = proof_lines(LONG, width=width).splitlines()
    assert max(map(len, lines)) <= width
    assert lines[-1].endswith("end")
    assert all(line.startswith(" " * 21) for line in lines[1:])


def test_figures_are_printed_where_they_are_asked_for() -> None:
    assert "calls" not in proof_lines(LONG)
    assert proof_lines(LONG, verbose=True).splitlines()[1] == " " * 21 + "calls 2, share 0.5"
    assert proof_lines(passed("order", "so"), verbose=True).count("\n") == 1


SO, NOT, LACKS = passed("a", "so"), failed("b", "not"), skipped("c", "torch is not installed")
OTHER = skipped("d", "mypy is not installed: pip install mypy")


@pytest.mark.parametrize(
    ("proofs", "strict", "line"),
    [
        ([SO], False, "1 row: 1 pass, 0 skipped, 0 fail\n"),
        ([SO, SO, NOT], True, "3 rows: 2 pass, 0 skipped, 1 fail\n"),
        ([SO, LACKS], False, "2 rows: 1 pass, 1 skipped, 0 fail\n"),
        (
            [SO, LACKS],
            True,
            "2 rows: 1 pass, 1 skipped, 0 fail; with --strict a skipped row fails\n",
        ),
    ],
)
def test_the_last_line_counts_the_rows(proofs: list[Proof], strict: bool, line: str) -> None:
    assert proof_count(proofs, strict=strict) == line


@pytest.mark.parametrize("proofs", [[], [SO, NOT, OTHER], [failed("e", LACKS.detail)]])
def test_nothing_of_the_extra_that_lacks_is_no_hint(proofs: list[Proof]) -> None:
    assert how_to_install(proofs) is None


def test_how_to_install_is_right_in_a_clone_and_elsewhere() -> None:
    hint = how_to_install([SO, LACKS, LACKS])
    assert hint is not None
    assert "pip install '.[verify]' in a clone" in hint
    assert "pip install 'vllm-codemods[verify]'" in hint


@pytest.mark.parametrize("recipe", [None, "made-up"])
def test_a_row_as_data_has_all_of_it(recipe: str | None) -> None:
    assert proof_document(recipe, failed("keys", "why", keys=3)) == {
        "recipe": recipe,
        "proof": "keys",
        "status": "fail",
        "detail": "why",
        "figures": {"keys": 3},
    }
