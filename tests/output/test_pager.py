"""A dry run at a terminal: colour, notes and the pager; plain bytes everywhere else."""

from __future__ import annotations

import io
import os
import pty
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from codemods.engine.plan import FileChange, Outcome, Plan, Reason, Status, Tree, Verdict
from codemods.output.pager import choose_pager, coloured, show
from codemods.output.patch import unified
from tests.output.forms import dep3_form
from tests.plans import plan_of

BEFORE = b"".join(b"line %d\n" % number for number in range(1, 31))
AFTER = BEFORE.replace(b"line 2\n", b"import\n").replace(b"line 20\n", b"line 20\ncall\r\n")


class Terminal(io.BytesIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def plan(tmp_path: Path) -> Plan:
    worker = Outcome("caller", Status.EDIT, Reason.ADDED, "Calls it once.", "w.py", 21)
    kernel = Outcome("table", Status.PRESENT, Reason.ALREADY_PRESENT, "Listed.", "k.py", 1)
    change = FileChange("w.py", BEFORE, AFTER, ("caller",))
    return plan_of([kernel, worker], [change], tree=Tree(tmp_path, "."))


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    return {
        "PATH": os.environ["PATH"],
        "HOME": str(tmp_path),
        "TERM": "xterm",
        "GIT_CONFIG_GLOBAL": str(tmp_path / "gitconfig"),
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CEILING_DIRECTORIES": str(tmp_path.parent),
        "PAGER": "cat",
    }


def shown(plan: Plan, environ: dict[str, str], out: io.BytesIO | None = None) -> bytes:
    out = out if out is not None else Terminal()
    show(plan, unified(plan), out, environ)
    return out.getvalue()


def test_what_is_no_terminal_gets_the_patch_itself(plan: Plan, environ: dict[str, str]) -> None:
    assert shown(plan, environ | {"PAGER": "false"}, io.BytesIO()) == unified(plan)


@pytest.mark.parametrize("variable", [{"NO_COLOR": "1"}, {"TERM": "dumb"}])
def test_a_terminal_that_wants_no_colour_gets_the_patch_itself(
    plan: Plan, environ: dict[str, str], variable: dict[str, str]
) -> None:
    assert shown(plan, environ | variable) == unified(plan)


@pytest.mark.parametrize("variable", [{}, {"NO_COLOR": "1"}])
def test_the_trees_lines_cannot_act_on_the_terminal(
    tmp_path: Path, environ: dict[str, str], variable: dict[str, str]
) -> None:
    evil = "# \033]0;x\a \N{RIGHT-TO-LEFT OVERRIDE}\t\N{LATIN SMALL LETTER E WITH ACUTE}".encode()
    change = FileChange("w.py", evil + b"\xff\n", evil + b"\xff\nnew\n", ("caller",))
    made = plan_of([], [change], tree=Tree(tmp_path, "."))
    lines = shown(made, environ | variable)
    assert "# \\x1b]0;x\\x07 \\u202e\té\\xff\n".encode() in lines
    assert evil in shown(made, environ, io.BytesIO())


def test_an_empty_no_color_counts_as_none(plan: Plan, environ: dict[str, str]) -> None:
    assert b"\033[" in shown(plan, environ | {"NO_COLOR": ""})


def test_an_empty_patch_starts_no_pager(plan: Plan, environ: dict[str, str]) -> None:
    nothing = plan_of(tree=plan.tree, verdict=Verdict.ALREADY_FIXED)
    marker = plan.tree.root / "started"
    assert shown(nothing, environ | {"PAGER": f"touch {marker}"}) == b""
    assert not marker.exists()


def test_without_the_colours_and_notes_it_is_the_patch(plan: Plan) -> None:
    for patch in (unified(plan), dep3_form(plan)):
        text = b"".join(coloured(plan, patch))
        bare = re.sub(rb"\033\[33m# [^\n]*\n", b"", text)
        assert re.sub(rb"\033\[\d*m", b"", bare) == patch


def test_each_hunk_shows_its_edit_and_reason(plan: Plan) -> None:
    text = b"".join(coloured(plan, unified(plan)))
    note = b"\033[33m# caller (added): Calls it once.\033[m\n"
    assert text.count(note) == 2
    assert text.count(note + b"\033[36m@@ ") == 2
    assert b"Listed." not in text


def test_a_carriage_return_stays_inside_the_colour(plan: Plan) -> None:
    assert b"\033[32m+call\r\033[m\n" in b"".join(coloured(plan, unified(plan)))


@pytest.mark.parametrize(
    ("variables", "expected"),
    [
        ({}, ("less",)),
        ({"PAGER": "more"}, ("more",)),
        ({"PAGER": "less -S '+/a b'"}, ("less", "-S", "+/a b")),
        ({"PAGER": "more", "GIT_PAGER": "most"}, ("more",)),
        ({"PAGER": ""}, None),
        ({"PAGER": "cat"}, None),
        ({"PAGER": "less '"}, None),
    ],
)
def test_the_pager_is_the_environments_or_less(
    tmp_path: Path,
    variables: dict[str, str],
    expected: tuple[str, ...] | None,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (tmp_path / "less").touch(mode=0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert choose_pager(variables) == expected


def test_without_less_there_is_no_pager(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nonexistent")
    assert choose_pager({}) is None


def test_the_pager_gets_the_diff(plan: Plan, environ: dict[str, str]) -> None:
    seen = plan.tree.root / "seen"
    command = f"sh -c '{{ printenv LESS; cat; }} > {seen}'"
    assert shown(plan, environ | {"PAGER": command}) == b""
    assert seen.read_bytes() == b"FRX\n" + b"".join(coloured(plan, unified(plan)))


@pytest.mark.parametrize("pager", ["no-such-pager-here", "/dev/null"])
def test_a_pager_that_cannot_run_leaves_the_diff_on_the_terminal(
    plan: Plan, environ: dict[str, str], pager: str
) -> None:
    assert b"+import" in shown(plan, environ | {"PAGER": pager})


def test_a_pager_that_quits_early_is_no_error(plan: Plan, environ: dict[str, str]) -> None:
    assert shown(plan, environ | {"PAGER": "true"}) == b""


def test_on_a_real_terminal_a_short_diff_is_shown_by_less(
    plan: Plan, environ: dict[str, str]
) -> None:
    if shutil.which("less") is None:
        pytest.skip("less is not installed")
    leader, follower = pty.openpty()
    with os.fdopen(leader, "rb", buffering=0) as screen, os.fdopen(follower, "wb") as out:
        assert out.isatty()
        show(plan, unified(plan), out, environ | {"PAGER": "cat"})
        assert b"# caller (added)" in screen.read(4096)


def screen_of(environ: dict[str, str], *options: str) -> bytes:
    """What `diff` of a fixture tree puts on a terminal."""
    root = Path(__file__).resolve().parents[2]
    command = [sys.executable, "-m", "codemods", "diff", str(root / "fixtures/forks/base")]
    leader, follower = pty.openpty()
    ran = subprocess.Popen(
        [*command, *options],
        stdin=subprocess.DEVNULL,
        stdout=follower,
        stderr=subprocess.DEVNULL,
        env=environ | {"PYTHONPATH": str(root)},
    )
    os.close(follower)
    screen = b""
    while True:
        try:
            part = os.read(leader, 65536)
        except OSError:  # Linux says so when the last writer has gone
            break
        if not part:
            break
        screen += part
    os.close(leader)
    assert ran.wait() == 0
    return screen.replace(b"\r\n", b"\n")


def test_the_command_at_a_terminal_gives_the_pager_notes_and_colour(
    environ: dict[str, str],
) -> None:
    screen = screen_of(environ | {"PAGER": "sed s/^/paged:/"})
    assert b"paged:\033[33m# kernel (added): " in screen
    assert b"paged:\033[32m+@triton.jit(do_not_specialize=" in screen


def test_the_command_at_a_terminal_obeys_no_color(environ: dict[str, str]) -> None:
    screen = screen_of(environ | {"NO_COLOR": "1"})
    assert b"\033" not in screen
    assert b"\n+@triton.jit(do_not_specialize=" in screen


def test_the_command_with_a_file_to_write_leaves_the_terminal_alone(
    environ: dict[str, str], tmp_path: Path
) -> None:
    assert screen_of(environ, "-o", str(tmp_path / "patch")) == b""
    patch = (tmp_path / "patch").read_bytes()
    assert b"\033" not in patch
    assert patch.startswith(b"--- a/")
