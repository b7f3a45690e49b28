"""`--ref`: what check, diff and verify say of a commit is what they say of a checkout of it."""

from __future__ import annotations

import io
import json
import re
import shutil
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path

import pytest

from codemods.cli.main import main
from codemods.prove import proof_process
from codemods.recipes.slot_mapping import proofs
from tests.forks.trees import WORKER, fork
from tests.prove.forked import needs_the_verify_extra, run_worker
from tests.repositories import commit, git, repository

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
# A proof of the text and one that runs it: the rest read a commit's files in the same way.
PROVED = ("order", "state")
FIXABLE, FIXED, BROKEN = "00-no-monitor", "03-fix-in-place", "09-return-inside-the-branch"


@dataclass(frozen=True)
class Ran:
    returncode: int
    stdout: str
    stderr: str


def run(*arguments: str | Path) -> Ran:
    """`vllm-codemods ARGUMENTS` in this process."""
    out, err = io.TextIOWrapper(io.BytesIO(), "utf-8", newline=""), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        code = main([str(one) for one in arguments])
    out.flush()
    assert isinstance(out.buffer, io.BytesIO)
    return Ran(code, out.buffer.getvalue().decode(), err.getvalue())


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Branches: fixable, fixed, refused, one without vLLM, and one like fixable."""
    made = repository(tmp_path_factory.mktemp("refs") / "r", {"README.md": b"no vLLM here\n"})
    git(made, "branch", "pages")
    for branch, name in (("fixable", FIXABLE), ("fixed", FIXED), ("refused", BROKEN)):
        git(made, "checkout", "-q", "-b", f"fork/{branch}", "pages")
        commit(made, fork(name).tree.files)
    git(made, "checkout", "-q", "-b", "fork/same", "fork/fixable")
    commit(made, {"README.md": b"another readme\n"})
    git(made, "checkout", "-q", "pages")
    return made


def test_a_ref_is_checked_as_its_checkout_is(root: Path, tmp_path: Path) -> None:
    git(root, "worktree", "add", "-q", str(tmp_path / "work"), "fork/fixable")
    try:
        disk = json.loads(run("check", tmp_path / "work", "--json").stdout)
    finally:
        git(root, "worktree", "remove", "--force", str(tmp_path / "work"))
    ran = run("check", root, "--ref", "fork/fixable", "--json")
    commit_ = json.loads(ran.stdout)
    assert ran.returncode == 1
    assert commit_["tree"].pop("ref") == "fork/fixable"
    assert disk["tree"].pop("ref") is None
    assert (commit_["tree"].pop("root"), disk["tree"].pop("root")) == (str(root), ".")
    assert commit_ == disk


def test_the_patch_of_a_ref_applies_to_its_checkout(root: Path, tmp_path: Path) -> None:
    patch = run("diff", root, "--ref", "fork/fixable", "--format", "git")
    assert patch.returncode == 0
    git(tmp_path, "clone", "-q", "-b", "fork/fixable", str(root), "clone")
    git(tmp_path / "clone", "am", "-q", stdin=patch.stdout.encode())
    assert run("check", tmp_path / "clone").returncode == 0


@needs_the_verify_extra
def test_verify_proves_a_ref(
    root: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(proof_process, "run_worker", run_worker)
    monkeypatch.setattr(proofs, "PROOFS", [row for row in proofs.PROOFS if row.name in PROVED])
    code = main(["verify", str(root), "--ref", "fork/fixable", "--target", "cuda:90"])
    out = capsys.readouterr().out
    assert code == 0, out
    first, *_, last = out.splitlines()
    assert re.fullmatch(r"vLLM fork/fixable [0-9a-f]{12} in vllm: fixable", first)
    assert all(re.search(rf"^{name} +pass", out, re.M) for name in PROVED)
    assert re.fullmatch(r"\d+ rows: \d+ pass, \d+ skipped, 0 fail", last)


@pytest.mark.parametrize(
    ("refs", "code"),
    [
        (["fork/fixed", "fork/fixed~0"], 0),
        (["fork/fixed", "fork/fixable"], 1),
        (["fork/*"], 3),
        (["fork/fix*"], 1),
        (["fork/fixed", "pages"], 3),
    ],
)
def test_several_refs_exit_with_the_worst(refs: list[str], code: int, root: Path) -> None:
    ran = run("check", root, *(word for ref in refs for word in ("--ref", ref)))
    assert (ran.returncode, ran.stderr) == (code, "")


def test_several_refs_have_a_row_each(root: Path) -> None:
    lines = run("check", root, "--ref", "fork/*", "--ref", "pages").stdout.splitlines()
    rows = {line.split()[0]: line.split()[2] for line in lines[1:-1]}
    assert rows == {
        "fork/fixable": "fixable",
        "fork/fixed": "already-fixed",
        "fork/refused": "refused",
        "fork/same": "fixable",
        "pages": "refused",
    }
    assert lines[-2].split("  ")[-1].startswith("holds no vLLM package (")
    assert lines[-1] == "5 refs: 2 refused, 2 fixable, 1 already-fixed"


def test_each_ref_with_another_verdict_than_required_is_named(root: Path) -> None:
    refs = ("--ref", "fork/fixed", "--ref", "fork/fix*")
    ran = run("check", root, *refs, "--require", "superseded")
    assert ran.returncode == 1
    assert [line.split(" in ")[0] for line in ran.stderr.splitlines()] == [
        "vllm-codemods: the tree at fork/fixed",
        "vllm-codemods: the tree at fork/fixable",
    ]


def test_several_refs_are_a_list_in_json(root: Path) -> None:
    found = json.loads(run("check", root, "--ref", "fork/*", "--json").stdout)
    assert found["verdict"] == "refused"
    assert [tree["tree"]["ref"] for tree in found["trees"]] == [
        "fork/fixable", "fork/fixed", "fork/refused", "fork/same",
    ]  # fmt: skip
    first, *_, same = found["trees"]
    assert first.pop("tree")["commit"] != same.pop("tree")["commit"]
    assert first == same


def test_several_refs_are_a_table_in_markdown(root: Path) -> None:
    lines = run("check", root, "--ref", "fork/*", "--format", "markdown").stdout.splitlines()
    assert lines[:2] == ["| ref | commit | verdict | why |", "|---|---|---|---|"]
    assert lines[2].startswith("| fork/fixable | ")
    assert len(lines) == 8


def test_the_table_fits_a_terminal(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    out = run("check", root, "--ref", "fork/*").stdout
    assert max(map(len, out.splitlines())) <= 60


def test_a_bare_repository_is_read(root: Path, tmp_path: Path) -> None:
    git(tmp_path, "clone", "-q", "--bare", str(root), "bare.git")
    before = sorted((tmp_path / "bare.git").rglob("*"))
    ran = run("check", tmp_path / "bare.git", "--ref", "fork/fixable", "--json")
    assert ran.returncode == 1
    assert json.loads(ran.stdout)["tree"]["root"] == str(tmp_path / "bare.git")
    assert sorted((tmp_path / "bare.git").rglob("*")) == before


def test_a_bare_repository_without_a_ref_is_told_of_the_option(root: Path, tmp_path: Path) -> None:
    git(tmp_path, "clone", "-q", "--bare", str(root), "bare.git")
    hint = "it is a bare repository, whose commits --ref reads"
    ran = run("check", tmp_path / "bare.git")
    assert (ran.returncode, ran.stdout) == (2, "")
    assert "holds no vLLM package" in ran.stderr
    assert ran.stderr.endswith(f"; {hint}\n")
    (tmp_path / "empty").mkdir()
    git(tmp_path, "init", "-q", "work-tree")
    for other in ("empty", "work-tree"):
        assert hint not in run("check", tmp_path / other).stderr


def test_the_work_tree_and_its_state_do_not_count(root: Path, tmp_path: Path) -> None:
    git(tmp_path, "clone", "-q", "-b", "fork/fixable", str(root), "clone")
    worker = tmp_path / "clone" / "vllm" / WORKER
    worker.write_text("def broken(:\n")
    assert run("check", tmp_path / "clone", "--ref", "HEAD").returncode == 1
    assert worker.read_text() == "def broken(:\n"


def test_refs_that_share_their_files_are_decided_once(
    root: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from codemods.cli import planned

    made: list[str | None] = []
    real = planned.make_plan

    def counted(checkout, *arguments, **options):  # type: ignore[no-untyped-def]
        made.append(checkout.ref)
        return real(checkout, *arguments, **options)

    monkeypatch.setattr(planned, "make_plan", counted)
    assert main(["check", str(root), "--ref", "fork/same", "--ref", "fork/fix*"]) == 1
    assert made == ["fork/same", "fork/fixed"]
    assert "3 refs: 2 fixable, 1 already-fixed" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["check", "--ref", "none"], "no such ref"),
        (["check", "--ref", "none/*"], "no ref"),
        (["check", "--ref", ""], "no git ref"),
        (["check", "--ref", "pages"], "vllm-codemods: pages: holds no vLLM package"),
        (["diff", "--ref", "pages"], "vllm-codemods: pages: holds no vLLM package"),
        (["check", "--ref", "pages", "--release", "0.21.0"], "not both"),
        (["diff", "--ref", "fork/*"], "for check"),
        (["diff", "--ref", "pages", "--ref", "fork/fixed"], "for check"),
        (["verify", "--ref", "fork/fixed", "--ref", "fork/fixable"], "for check"),
        (["check", "--ref", "fork/fixed", "--package", "none"], "no vLLM package"),
    ],
)
def test_what_is_unreadable_is_a_usage_error(
    arguments: list[str], message: str, root: Path
) -> None:
    tree = [] if "--release" in arguments else [root]
    ran = run(*arguments, *tree)
    assert ran.returncode == 2
    assert message in ran.stderr
    assert len(ran.stderr.splitlines()) == 1
    assert ran.stdout == ""


def test_apply_takes_no_ref(root: Path) -> None:
    assert run("apply", root, "--ref", "fork/fixable").returncode == 2


@pytest.mark.parametrize("what", ["no repository", "a file", "nothing"])
def test_what_is_no_repository_is_a_usage_error(what: str, tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    if what == "a file":
        tree.touch()
    elif what == "no repository":
        tree.mkdir()
    ran = run("check", tree, "--ref", "main")
    assert ran.returncode == 2
    assert len(ran.stderr.splitlines()) == 1


@pytest.mark.parametrize("verb", ["check", "diff", "verify"])
def test_a_partial_clone_is_refused_as_unreadable(verb: str, root: Path, tmp_path: Path) -> None:
    git(root, "config", "uploadpack.allowFilter", "true")
    for kind in ("blob:none", "tree:0"):
        name = kind.replace(":", "")
        git(tmp_path, "clone", "-q", "--bare", f"--filter={kind}", f"file://{root}", name)
        ran = run(verb, tmp_path / name, "--ref", "fork/fixable")
        assert ran.returncode == 3
        assert "unreadable" in ran.stdout + ran.stderr
        assert "partial clone" in ran.stdout + ran.stderr
