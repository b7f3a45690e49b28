"""Plans over files on the disk, in every form of a patch."""

from __future__ import annotations

from datetime import datetime, timezone
from pathlib import Path

from codemods.engine.plan import FileChange, Outcome, Plan, Reason, Status, Tree
from codemods.output.mail import Mail
from codemods.output.patch import mailbox, mails, unified
from tests.plans import plan_of

DATE = datetime(2026, 5, 20, 8, 0, tzinfo=timezone.utc)
MAIL = Mail("Ada Example <ada@example.org>", DATE, "Warm up the kernel")


def numbered(count: int) -> bytes:
    return b"".join(b"line %d\n" % number for number in range(1, count + 1))


FILES = [
    ("vllm/plain.py", numbered(30), numbered(30).replace(b"line 9\n", b"x\n") + b"y\n"),
    ("vllm/crlf.py", b"a\r\nb\r\n", b"a\r\nc\r\nb\r\n"),
    ("vllm/latin.py", b"# \xe9\nx\n", b"# \xe9\ny\n"),
    ("vllm/no end.py", b"x\ny", b"x\nz\ny"),
    ("vllm/empty.py", b"x\n", b""),
    ("vllm/was-empty.py", b"", b"x\n"),
    ("vllm/minus.py", b"-- a\n++ b\n@@ -1 +1 @@\n", b"-- a\n++ c\n@@ -1 +1 @@\n"),
]


def plan_over(root: Path, *files: tuple[str, bytes, bytes]) -> Plan:
    """A plan over files that are written to `root` as they are before."""
    for path, before, _ in files:
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_bytes(before)
    changes = [FileChange(path, before, after, ("table",)) for path, before, after in files]
    outcomes = [
        Outcome("table", Status.EDIT, Reason.ADDED, "Adds a name.", change.path, 1)
        for change in changes
    ]
    return plan_of(outcomes, changes, tree=Tree(root, "vllm", "0.21.0"))


def git_form(plan: Plan, mail: Mail = MAIL) -> bytes:
    return mailbox(mails(plan, mail))


def dep3_form(plan: Plan, mail: Mail = MAIL) -> bytes:
    return mailbox(mails(plan, mail, dep3=True))


def every_form(plan: Plan) -> list[bytes]:
    return [unified(plan), git_form(plan), dep3_form(plan)]
