"""What a proof is asked and what it answers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum

from codemods.prove.subject import Subject

NOT_INSTALLED = "is not installed"  # how the row ends that lacks a package of the extra `verify`
DEFAULT_TARGETS = ("cuda:80", "cuda:90", "cuda:100", "hip:gfx942")


class ProofStatus(str, Enum):
    """How a proof ended; a skipped one proves nothing and says what it lacks."""

    PASS = "pass"
    FAIL = "fail"
    SKIPPED = "skipped"


@dataclass(frozen=True)
class Options:
    """What to prove with.

    `targets` are Triton targets, `cuda:` and a compute capability without its point, or `hip:` and
    an LLVM processor name. `timeout` is in seconds, for each proof that runs code of the tree.
    `max_num_tokens` is the largest batch an engine is taken to run (vLLM's
    `--max-num-batched-tokens`; 8192 is its default for a server on a large GPU).
    """

    targets: tuple[str, ...] = DEFAULT_TARGETS
    mypy: bool = False
    timeout: float = 300.0
    gpu: bool = False
    max_num_tokens: int = 8192


@dataclass(frozen=True)
class Proof:
    """One row: what was proved, how it ended, and the figures behind it."""

    name: str
    status: ProofStatus
    detail: str
    figures: dict[str, int | float | str] = field(default_factory=dict)

    @property
    def lacks_a_package(self) -> bool:
        """Whether it was skipped for a package that the extra `verify` installs."""
        return self.status is ProofStatus.SKIPPED and self.detail.endswith(NOT_INSTALLED)


def passed(name: str, detail: str, **figures: int | float | str) -> Proof:
    return Proof(name, ProofStatus.PASS, detail, figures)


def failed(name: str, detail: str, **figures: int | float | str) -> Proof:
    return Proof(name, ProofStatus.FAIL, detail, figures)


def skipped(name: str, detail: str, **figures: int | float | str) -> Proof:
    return Proof(name, ProofStatus.SKIPPED, detail, figures)


@dataclass(frozen=True)
class Row:
    """One proof as `verify` lists it; `asked_by` is the option without which it does not run."""

    name: str
    prove: Callable[[Subject, Options], Proof]
    asked_by: str | None = None
