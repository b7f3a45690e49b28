"""What a rewrite loses: comments, line ends, formatting; what it leaves behind or does again."""

from __future__ import annotations

import io
import json
import subprocess
import tokenize
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

from . import project
from .attempts import Attempt, by_contender

FIRST_PARTY = 'lint.isort.known-first-party = ["{}"]'


def results(attempts: Sequence[Attempt], jobs: int) -> list[dict[str, Any]]:
    """For each contender: on how many of the trees that it says it fixed something was lost."""
    with ThreadPoolExecutor(jobs) as pool:
        return [
            {
                "contender": name,
                **total(list(pool.map(losses, [a for a in some if a.succeeded and a.changed]))),
            }
            for name, some in by_contender(attempts).items()
        ]


def losses(attempt: Attempt) -> dict[str, int]:
    """Files with each loss; of lint, findings."""
    before, after, package = attempt.subject.root, attempt.after, attempt.subject.package
    names = tuple(name for name in attempt.changed if name.endswith(".py"))
    texts = [(_read(before / name), _read(after / name)) for name in names]
    new_findings = findings(after, package, names) - findings(before, package, names)
    return {
        "comments": sum(comments_lost(*both) > 0 for both in texts),
        "line_ends": sum(line_ends_lost(*both) for both in texts),
        "format": len(formatted(before, names) - formatted(after, names)),
        "lint": new_findings.total(),
        "again": len(attempt.changed_again),
        "left_behind": len(attempt.left_behind),
    }


def total(found: Sequence[dict[str, int]]) -> dict[str, int]:
    """How many trees have each loss."""
    kinds = ("comments", "line_ends", "format", "lint", "again", "left_behind")
    return {"trees": len(found)} | {kind: sum(one[kind] > 0 for one in found) for kind in kinds}


def comments_lost(before: bytes, after: bytes) -> int:
    """How many comments are gone, or have another text."""
    return (_comments(before) - _comments(after)).total()


def line_ends_lost(before: bytes, after: bytes) -> bool:
    """Whether a file has a kind of line end that it had not, or has lost the one at its end."""
    ends = (before[-1:] == b"\n", after[-1:] == b"\n")
    return not _line_ends(after) <= _line_ends(before) or ends[0] != ends[1]


@cache
def formatted(root: Path, names: tuple[str, ...]) -> frozenset[str]:
    """The files that ruff, with the tree's settings, would leave as they are."""
    if not names or _ruff(root, "format", "--check", *names).returncode == 0:
        return frozenset(names)
    return frozenset(n for n in names if _ruff(root, "format", "--check", n).returncode == 0)


@cache
def findings(root: Path, package: str, names: tuple[str, ...]) -> Counter[tuple[str, ...]]:
    """What ruff complains about, line numbers left out."""
    if not names:
        return Counter()
    first_party = FIRST_PARTY.format(Path(package).name)
    ran = _ruff(root, "check", "--config", first_party, "--output-format", "json", *names)
    return Counter(
        (Path(one["filename"]).name, str(one["code"]), one["message"])
        for one in json.loads(ran.stdout)
    )


def _comments(text: bytes) -> Counter[str]:
    """The comments, up to where the file is no Python."""
    found: Counter[str] = Counter()
    with suppress(tokenize.TokenError, SyntaxError):
        for token in tokenize.tokenize(io.BytesIO(text).readline):
            if token.type == tokenize.COMMENT:
                found[token.string.rstrip()] += 1
    return found


def _line_ends(text: bytes) -> set[bytes]:
    return {line[len(line.rstrip(b"\r\n")) :] for line in text.splitlines(keepends=True)} - {b""}


def _read(path: Path) -> bytes:
    return path.read_bytes() if path.exists() else b""


def _ruff(root: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    verb, *rest = arguments
    command = [str(project.RUFF), verb, "--no-cache", *rest]
    return subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)
