"""The command line's options: what is taken, and what is wrong usage."""

from __future__ import annotations

import argparse

import pytest

from codemods.cli.options import parser
from codemods.engine import registry

VERBS = ("check", "diff", "apply", "verify")


def verb(name: str) -> int:
    return VERBS.index(name)


RUN = {name: (lambda _options, name=name: verb(name)) for name in VERBS}


def parsed(*argv: str) -> argparse.Namespace:
    return parser(RUN, argv).parse_args(argv)


@pytest.mark.parametrize("name", VERBS)
def test_each_verb_has_its_function_and_the_common_options(name: str) -> None:
    options = parsed(name, "tree", "--package", "acme", "--json", "--only", "kernel")
    assert options.run(options) == verb(name)
    assert (options.tree, options.package, options.json) == ("tree", "acme", True)
    assert (options.only, options.skip, options.release) == (["kernel"], [], None)


@pytest.mark.parametrize(
    "argv",
    [
        (),
        ("fix",),
        ("check", "--recipe", "everything"),
        ("check", ""),
        ("check", "a", "b"),
        ("check", "--format", "dep3"),
        ("diff", "--format", "markdown"),
        ("apply", "--require", "perfect"),
        ("verify", "--timeout", "soon"),
        ("verify", "--target", "sm_90"),
        ("verify", "--timeout", "nan"),
        ("verify", "--timeout", "inf"),
        ("verify", "--timeout", "-1"),
        ("verify", "--require", "fixable"),
    ],
)
def test_wrong_usage_exits_2(argv: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        parsed(*argv)
    assert caught.value.code == 2
    assert "usage: vllm-codemods" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("argv", "option"),
    [
        (("check", "--onyl", "kernel"), "--only EDIT"),
        (("check", "a", "b"), "--only EDIT"),
        (("diff", "--allow-dirty"), "-o FILE"),
        (("apply", "--target", "cuda:90"), "--allow-dirty"),
        (("verify", "--require", "fixable"), "--target ARCH"),
    ],
)
def test_wrong_usage_of_a_verb_prints_its_own_options(
    argv: tuple[str, ...], option: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        parsed(*argv)
    err = capsys.readouterr().err
    assert err.startswith(f"usage: vllm-codemods {argv[0]} ")
    assert option in err
    assert f"vllm-codemods {argv[0]}: error: unrecognized arguments: " in err


@pytest.mark.parametrize("argv", [("--ref", "main"), ("--ref=main",), ("--dry-run", "--ref")])
def test_apply_says_what_to_do_in_place_of_a_ref(
    argv: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as caught:
        parsed("apply", *argv)
    assert caught.value.code == 2
    usage, _, message = capsys.readouterr().err.partition("error: ")
    assert message == (
        "apply writes a working tree and takes no --ref: check the branch out, then apply\n"
    )
    assert "--ref" not in usage


def test_every_recipe_can_be_chosen() -> None:
    for name in (*registry.names(), "all"):
        assert parsed("check", "--recipe", name).recipe == [name]


def test_what_is_left_out_is_left_to_the_verb() -> None:
    options = parsed("check")
    assert (options.tree, options.recipe, options.only, options.skip) == (None, [], [], [])
