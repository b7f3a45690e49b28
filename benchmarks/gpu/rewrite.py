"""Copy unpacked vLLM trees and rewrite the copies with this project's own tool.

    python benchmarks/gpu/rewrite.py ROOT [RELEASE ...]

For each ROOT/trees/RELEASE makes ROOT/after/RELEASE: its Python files are copies, everything else
(shared objects, data) links to the original; a tree's test suite, ROOT/suites/RELEASE, is put
beside the package first, so that the edit of vLLM's own tests is made too, and is then left in
ROOT/suites-after/RELEASE.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from codemods.engine.checkout import Checkout
from codemods.engine.planning import make_plan
from codemods.write import write


def copy_tree(source: Path, target: Path) -> None:
    """A copy of an unpacked wheel whose big files are links to the original's."""
    shutil.rmtree(target, ignore_errors=True)
    for path in source.rglob("*"):
        here = target / path.relative_to(source)
        if path.is_dir():
            here.mkdir(parents=True, exist_ok=True)
        elif "__pycache__" not in path.parts:
            here.parent.mkdir(parents=True, exist_ok=True)
            if path.suffix == ".py":
                shutil.copy2(path, here)
            else:
                here.symlink_to(path.resolve())


def rewrite(root: Path, release: str) -> str:
    """Make the rewritten copies of one release; one line on what was done."""
    after, suite = root / "after" / release, root / "suites-after" / release
    copy_tree(root / "trees" / release, after)
    shutil.rmtree(suite, ignore_errors=True)
    if (root / "suites" / release).exists():
        shutil.copytree(root / "suites" / release, suite)
        (suite / "tests").rename(after / "tests")
    plan = make_plan(Checkout.find(after))
    write(plan)
    if suite.exists():
        (after / "tests").rename(suite / "tests")
    edits = " ".join(f"{o.edit.value}:{o.status.value}" for o in plan.outcomes)
    return f"{release} {plan.verdict.value} {edits}"


def main() -> int:
    root = Path(sys.argv[1])
    failed = 0
    found = sorted(path.parent.name for path in (root / "trees").glob("*/vllm"))
    for release in sys.argv[2:] or found:
        try:
            print(rewrite(root, release), flush=True)
        except Exception as error:  # one release's fault must not keep the others
            failed = 1
            print(f"{release} FAILED {error!r}", flush=True)
    return failed


if __name__ == "__main__":
    sys.exit(main())
