"""The command line's options, a group of them for each verb."""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, NoReturn

from codemods.cli import streams
from codemods.engine import registry
from codemods.engine.plan import Verdict
from codemods.output.table import NAME, version

Verb = Callable[[argparse.Namespace], int]
_DAY = 86_400.0


class _Version(argparse.Action):
    """Looks the version up only when it is asked for, which takes as long as parsing a file."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        streams.write(f"{parser.prog} {version()}\n")
        parser.exit()


def _formatter(prog: str) -> argparse.HelpFormatter:
    """argparse makes one for each option, and asks shutil for a width that it is not given."""
    return argparse.HelpFormatter(prog, width=streams.columns() - 2)


class _VerbParser(argparse.ArgumentParser):
    """Says itself what it does not know: the parser above lists no option of a verb."""

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> tuple[Any, list[str]]:
        found, unknown = super().parse_known_args(args, namespace)
        if unknown:
            self.error(f"unrecognized arguments: {' '.join(unknown)}")
        return found, unknown


class _NoRef(argparse.Action):
    """`apply --ref`: says what to do instead."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> NoReturn:
        parser.error(
            "apply writes a working tree and takes no --ref: check the branch out, then apply"
        )


def parser(run: Mapping[str, Verb], argv: Sequence[str]) -> argparse.ArgumentParser:
    """The command line as the README documents it; `run` has a function for each verb.

    Only a verb that `argv` names gets its options: those of all take as long as parsing a file.
    """
    top = argparse.ArgumentParser(
        prog=NAME,
        description="Make warm-up fixes in a vLLM tree, and prove them.",
        epilog="Exit codes: 0 done or nothing to do, 1 would change or a proof fails, "
        "2 usage, 3 refused, 4 a write failed and was undone, 130 interrupted (Ctrl-C).",
        formatter_class=_formatter,
    )
    top.add_argument("--version", action=_Version, nargs=0, help="print the version and exit")
    verbs = top.add_subparsers(
        metavar="VERB", required=True, prog=top.prog, parser_class=_VerbParser
    )
    for name, words in _VERBS.items():
        one = verbs.add_parser(
            name,
            help=words.summary,
            description=f"{words.summary.capitalize()}. {words.more}",
            formatter_class=_formatter,
        )
        one.set_defaults(run=run[name])
        if name in argv:
            _add_common(one)
            words.add_options(one)
    return top


def _add_common(one: argparse.ArgumentParser) -> None:
    one.add_argument(
        "tree", nargs="?", type=_named, metavar="TREE", help="a folder that holds vLLM (default: .)"
    )
    one.add_argument(
        "--release",
        metavar="X.Y.Z",
        help="read this release's own sources, from PyPI, in place of TREE",
    )
    one.add_argument(
        "--package",
        metavar="PATH",
        help="the package to use, where TREE holds several, such as python/vllm",
    )
    one.add_argument("--json", action="store_true", help="print JSON (schema 2)")
    one.add_argument(
        "--recipe",
        action="append",
        default=[],
        choices=(*registry.names(), "all"),
        metavar="NAME",
        help=f"run this recipe (repeatable): {', '.join(registry.names())}, or all; "
        f"default: {registry.DEFAULT}",
    )
    for option, text in (("--only", "make only this edit"), ("--skip", "do not make this edit")):
        one.add_argument(
            option, action="append", default=[], metavar="EDIT", help=f"{text} (repeatable)"
        )
    one.add_argument(
        "--replace",
        action="store_true",
        help="replace a known other form of the recipe's warm-up with the recipe's own",
    )


def _add_check_options(one: argparse.ArgumentParser) -> None:
    one.add_argument(
        "--format",
        choices=("table", "markdown"),
        default="table",
        help="how to print it; markdown is for a CI summary (default: table)",
    )
    _add_require(one)
    _add_ref(
        one,
        "read this commit of the git repository TREE; with several, print a row for each "
        "(repeatable); a pattern such as 'release/*' means every branch and tag that it matches",
    )


def _add_diff_options(one: argparse.ArgumentParser) -> None:
    _add_patch_options(one)
    _add_require(one)
    _add_ref(one, "read this commit of the git repository TREE")


def _add_apply_options(one: argparse.ArgumentParser) -> None:
    one.add_argument(
        "--dry-run", action="store_true", help="write nothing; print the patch, as diff does"
    )
    one.add_argument(
        "--allow-dirty",
        action="store_true",
        help="also write files that have uncommitted changes",
    )
    one.add_argument(
        "--update-record",
        action="store_true",
        help="update the hashes in an installed package's RECORD",
    )
    _add_patch_options(one, only_with="--dry-run")
    _add_require(one)
    one.add_argument("--ref", action=_NoRef, nargs="?", help=argparse.SUPPRESS)


def _add_verify_options(one: argparse.ArgumentParser) -> None:
    one.add_argument(
        "--target",
        action="append",
        type=_target,
        metavar="ARCH",
        help="compile the kernels for this GPU, such as cuda:90 or hip:gfx942 (repeatable)",
    )
    one.add_argument("--gpu", action="store_true", help="run the proofs that need a GPU too")
    one.add_argument("--mypy", action="store_true", help="type-check the changed files too")
    one.add_argument("--strict", action="store_true", help="exit 1 when a proof is skipped")
    one.add_argument("--verbose", action="store_true", help="print each proof's figures too")
    one.add_argument(
        "--timeout",
        type=_seconds,
        default=300.0,
        metavar="SECONDS",
        help="time limit of each proof (default: 300)",
    )
    _add_ref(one, "read this commit of the git repository TREE")


class _Words(NamedTuple):
    """What a verb's help says of it, and what adds its own options."""

    summary: str
    add_options: Callable[[argparse.ArgumentParser], None]
    more: str = ""


_VERBS = {
    "check": _Words("print what each edit would do, and why", _add_check_options),
    "diff": _Words("print the patch that apply would make", _add_diff_options),
    "apply": _Words("rewrite the tree, all files or none", _add_apply_options),
    "verify": _Words(
        "prove the rewrite of the tree, or the tree itself when it is fixed",
        _add_verify_options,
        "Most proofs run code of the tree, in a process of their own with a time limit.",
    ),
}


def _named(tree: str) -> str:
    # An empty name would be the current folder: a script's variable that was never set.
    if not tree:
        raise argparse.ArgumentTypeError("an empty name")
    return tree


def _target(text: str) -> str:
    if not re.fullmatch(r"cuda:\d+|hip:gfx\w+", text):
        raise argparse.ArgumentTypeError(f"{text} is no target such as cuda:90 or hip:gfx942")
    return text


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds <= _DAY:
        raise argparse.ArgumentTypeError(f"{text} is no number of seconds up to {_DAY:.0f}")
    return seconds


def _add_patch_options(one: argparse.ArgumentParser, only_with: str = "") -> None:
    """Options on the patch; `only_with` names an option without which they are refused."""
    group = one.add_argument_group(
        f"the patch (only with {only_with})" if only_with else "the patch"
    )
    group.add_argument(
        "--format",
        choices=("unified", "git", "dep3"),
        default="unified",
        help="unified: a plain diff; git: a mail for git am; dep3: the same with Debian's DEP-3 "
        "fields (default: unified)",
    )
    group.add_argument(
        "-o",
        "--output",
        metavar="FILE",
        help="write the patch to FILE, or into DIR/: as changes.patch, or with git and dep3 a "
        "file for each recipe",
    )
    group.add_argument(
        "--author", metavar="'NAME <MAIL>'", help="author in the mail's header (git, dep3)"
    )
    group.add_argument(
        "--date",
        metavar="DATE",
        help="date in the mail's header (git, dep3; default: SOURCE_DATE_EPOCH, else now)",
    )
    group.add_argument("--subject", metavar="TEXT", help="subject in the mail's header (git, dep3)")


def _add_ref(one: argparse.ArgumentParser, text: str) -> None:
    one.add_argument("--ref", action="append", default=[], metavar="REF", help=text)


def _add_require(one: argparse.ArgumentParser) -> None:
    one.add_argument(
        "--require",
        metavar="VERDICT",
        choices=[verdict.value for verdict in Verdict],
        help="exit 1 unless the verdict is VERDICT, for example fixable",
    )
