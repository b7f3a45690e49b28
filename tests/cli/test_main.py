"""The command as scripts and people call it: streams, exit codes, and trees left as they were."""

from __future__ import annotations

import hashlib
import io
import json
import os
import re
import shlex
import shutil
import stat
import subprocess
import sys
import tempfile
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from codemods.cli.main import main
from codemods.engine import registry
from codemods.prove.proof import Proof, ProofStatus, Row
from codemods.prove.subject import Subject
from tests.forks.trees import BLOCK_TABLE, WARMUP, WORKER, fork

BASE = fork("00-monitor-in-triton-utils").tree
(RECIPE,) = registry.chosen(())
FILES = (BLOCK_TABLE, WARMUP, WORKER)
VERBS = ("check", "diff", "apply")
needs_git = pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="gives root's rights up in a child")


@dataclass(frozen=True)
class Ran:
    code: int
    out: str
    err: str

    @property
    def json(self) -> dict[str, Any]:
        found = json.loads(self.out)
        assert isinstance(found, dict)
        return found


def run(*argv: str | Path) -> Ran:
    """`vllm-codemods ARGV` in this process."""
    out, err = io.TextIOWrapper(io.BytesIO(), "utf-8", newline=""), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        code = main([str(argument) for argument in argv])
    out.flush()
    assert isinstance(out.buffer, io.BytesIO)
    return checked(Ran(code, out.buffer.getvalue().decode(), err.getvalue()))


def process(*argv: str | Path | bytes, **more: object) -> Ran:
    """`python -m codemods ARGV` in one of its own."""
    done = subprocess.run(
        [sys.executable, "-m", "codemods", *argv],
        **{
            "stdin": subprocess.DEVNULL,
            "stdout": subprocess.PIPE,
            "stderr": subprocess.PIPE,
            # readline, which pytest imports, sets COLUMNS behind Python's back.
            "env": dict(os.environ),
            **more,
        },  # type: ignore[call-overload]
    )
    out, err = (b"" if one is None else one for one in (done.stdout, done.stderr))
    return checked(Ran(done.returncode, out.decode(), err.decode()))


def checked(ran: Ran) -> Ran:
    assert "Traceback" not in ran.out + ran.err, ran.err
    return ran


def snapshot(root: Path) -> dict[str, tuple[int, str]]:
    """Every file's mode and digest."""
    return {
        path.relative_to(root).as_posix(): (
            path.lstat().st_mode,
            hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else "",
        )
        for path in sorted(root.rglob("*"))
        if ".git" not in path.relative_to(root).parts
    }


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    return BASE.write_to(tmp_path / "tree")


def edits(ran: Ran) -> dict[str, tuple[str, str]]:
    (recipe,) = ran.json["recipes"]
    return {one["edit"]: (one["status"], one["reason"]) for one in recipe["edits"]}


def test_check_prints_a_table_and_leaves_the_tree(tree: Path) -> None:
    before = snapshot(tree)
    ran = run("check", tree)
    assert ran.code == 1
    found = ran.out.splitlines()
    assert found[:2] == ["vLLM in vllm: fixable", "slot-mapping: fixable"]
    assert found[2].startswith("  No warm-up calls BlockTable.compute_slot_mapping. ")
    assert [line.split()[0] for line in found[3:-1]] == ["edit", *RECIPE.edits]
    assert found[-1] == "3 files would change"
    assert ran.err == ""
    assert snapshot(tree) == before


def test_diff_puts_the_patch_alone_on_stdout(tree: Path) -> None:
    before = snapshot(tree)
    ran = run("diff", tree)
    assert ran.code == 0
    assert ran.out.startswith("--- a/vllm/")
    assert ran.err.startswith("vLLM in vllm: fixable\n")
    assert snapshot(tree) == before


@pytest.mark.parametrize("form", ["unified", "git", "dep3"])
def test_diff_writes_the_same_patch_to_a_file(form: str, tree: Path, tmp_path: Path) -> None:
    options = ("--format", form, "--author", "A <a@example.invalid>", "--date", "2026-01-02")
    to_stdout = run("diff", tree, *options)
    to_file = run("diff", tree, *options, "-o", tmp_path / "fix.patch")
    assert (to_stdout.code, to_file.code) == (0, 0), to_file.err
    assert to_file.out == ""
    assert (tmp_path / "fix.patch").read_bytes().decode() == to_stdout.out


@pytest.mark.parametrize("form", ["unified", "git", "dep3"])
@pytest.mark.parametrize("folder", ["there", "new/"])
def test_a_folder_gets_a_patch_for_each_recipe(
    folder: str, form: str, tree: Path, tmp_path: Path
) -> None:
    (tmp_path / "there").mkdir()
    options = ("--format", form, "--author", "A <a@example.invalid>", "--date", "2026-01-02")
    ran = run("diff", tree, *options, "-o", f"{tmp_path}/{folder}")
    assert (ran.code, ran.out) == (0, "")
    name = "changes.patch" if form == "unified" else "0001-slot-mapping.patch"
    (patch,) = (tmp_path / folder).iterdir()
    assert patch.name == name
    assert patch.read_bytes().decode() == run("diff", tree, *options).out


@pytest.mark.parametrize("where", ["missing/fix.patch", "tree/vllm/v1/worker/gpu_worker.py/a"])
def test_a_patch_that_cannot_be_written_is_a_line(where: str, tree: Path, tmp_path: Path) -> None:
    ran = run("diff", tree, "-o", tmp_path / where)
    assert ran.code == 2
    assert ran.err.splitlines()[-1].startswith(f"vllm-codemods: {tmp_path / where}: ")


def test_apply_twice_is_already_fixed(tree: Path) -> None:
    first = run("apply", tree, "--json")
    assert (first.code, first.json["verdict"]) == (0, "fixed")
    after = snapshot(tree)
    second = run("apply", tree, "--json")
    assert (second.code, second.json["verdict"], second.json["files"]) == (0, "already-fixed", [])
    assert snapshot(tree) == after
    assert run("check", tree).code == 0
    assert run("diff", tree).out == ""


def test_apply_changes_what_check_said(tree: Path) -> None:
    said = run("check", tree, "--json").json["files"]
    before = snapshot(tree)
    run("apply", tree)
    after = snapshot(tree)
    assert {name: digest for name, (_, digest) in after.items() if before[name] != after[name]} == {
        one["path"]: one["sha256_after"] for one in said
    }
    assert all(before[one["path"]] == (after[one["path"]][0], one["sha256_before"]) for one in said)


def test_a_dry_run_of_apply_is_diff(tree: Path) -> None:
    before = snapshot(tree)
    assert run("apply", tree, "--dry-run") == run("diff", tree)
    assert snapshot(tree) == before


def test_json_is_schema_2(tree: Path) -> None:
    ran = run("check", tree, "--json")
    document = ran.json
    assert list(document) == ["schema", "tool", "tree", "verdict", "recipes", "files"]
    assert document["schema"] == 2
    assert document["tree"] == {
        "root": ".",
        "ref": None,
        "package": "vllm",
        "version": None,
        "commit": None,
    }
    (recipe,) = document["recipes"]
    assert list(recipe) == ["recipe", "verdict", "why", "edits"]
    assert (recipe["recipe"], recipe["verdict"]) == ("slot-mapping", "fixable")
    assert {tuple(one) for one in recipe["edits"]} == {
        ("edit", "file", "line", "status", "reason", "detail")
    }
    assert [list(one) for one in document["files"]] == [
        ["path", "sha256_before", "sha256_after"]
    ] * 3
    assert ran.err == ""


def test_json_of_diff_takes_the_patchs_place(tree: Path) -> None:
    ran = run("diff", tree, "--json")
    assert ran.json["verdict"] == "fixable"
    assert ran.err == ""


@pytest.mark.parametrize(
    ("options", "made"),
    [
        (["--only", "kernel"], {"kernel"}),
        (["--only", "kernel", "--only", "warmup"], {"kernel", "warmup"}),
        (["--only", "warmup"], {"warmup"}),
        (["--skip", "kernel"], {"warmup", "worker"}),
        (["--skip", "worker"], {"kernel", "warmup"}),
        (["--skip", "worker", "--skip", "warmup"], {"kernel"}),
        (["--only", "kernel", "--only", "worker", "--skip", "worker"], {"kernel"}),
    ],
)
def test_only_and_skip_leave_edits_out(options: list[str], made: set[str], tree: Path) -> None:
    ran = run("apply", tree, "--json", *options)
    assert ran.code == 0
    assert {edit for edit, (status, _) in edits(ran).items() if status == "edit"} == made
    again = run("check", tree, *options)
    assert again.code == 0, again.out
    assert again.out.startswith("vLLM in vllm: already-fixed (")


@pytest.mark.parametrize(
    ("options", "command"),
    [
        (["--skip", "worker", "--skip", "kernel", "--replace"],
         "--skip kernel --skip worker --replace"),
        (["--only", "warmup", "--only", "worker", "--skip", "worker", "--replace"],
         "--only warmup --replace"),
        (["--only", "kernel", "--replace"], "--only kernel"),
        (["--recipe", "all", "--only", "kernel"], "--only kernel"),
        (["--replace"], "--replace"),
        (["--replace", "--package", "./v llm"], "--replace --package './v llm'"),
    ],
)  # fmt: skip
def test_the_trailer_is_the_command_that_makes_the_patch(
    options: list[str], command: str, tree: Path
) -> None:
    if "--package" in options:
        (tree / "vllm").rename(tree / "v llm")
    (warmup,) = tree.glob("*/v1/worker/gpu/warmup.py")
    own = "\n\ndef warmup_v1_slot_mapping_kernel(runner):\n    pass\n"
    warmup.write_text(warmup.read_text() + own)
    ran = run("diff", tree, "--format", "git", *options)
    (made,) = re.findall(r"^Generated-by: vllm-codemods \S+ \((.*)\)$", ran.out, re.MULTILINE)
    assert made == f"apply --recipe slot-mapping {command}"
    again = run("diff", tree, "--format", "git", *shlex.split(made)[1:])
    assert hunks(again.out) == hunks(ran.out)


def hunks(patch: str) -> str:
    return patch[patch.index("\ndiff --git ") :]


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize("options", [["--skip", "warmup"], ["--only", "worker"]])
def test_a_call_without_its_function_is_refused(verb: str, options: list[str], tree: Path) -> None:
    before = snapshot(tree)
    ran = run(verb, tree, *options)
    assert ran.code == 3
    (line,) = [one for one in ran.err.splitlines() if one.startswith("vllm-codemods: ")]
    assert "worker refused (no-warmup-module)" in line
    assert snapshot(tree) == before


@pytest.mark.parametrize(
    "argv",
    [
        [],
        ["paint", "{tree}"],
        ["check", "{tree}", "--only", "everything"],
        ["check", "{tree}", "--only", "kernel", "--skip", "kernel"],
        ["check", "{tree}", *(part for edit in RECIPE.edits for part in ("--skip", edit))],
        ["check", "{tree}", "--release", "0.21.0"],
        ["check", "--release", "one"],
        ["check", "{tree}", "{tree}"],
        ["check", "{tree}", "--allow-dirty"],
        ["check", "{tree}", "--package", "nowhere"],
        ["diff", "{tree}", "--format", "word"],
        ["diff", "{tree}", "--format", "git", "--date", "some day"],
        ["apply", "--release", "0.21.0"],
        ["check", "{tree}/nowhere"],
        ["check", "{tree}/vllm/v1/worker/block_table.py"],
        ["check", "{tree}/vllm/model_executor"],
        ["check", ""],
        ["check", "\0"],
    ],
    ids=" ".join,
)
def test_wrong_usage_is_exit_2(argv: list[str], tree: Path) -> None:
    before = snapshot(tree)
    ran = run(*(part.replace("{tree}", str(tree)) for part in argv))
    assert ran.code == 2
    assert ran.out == ""
    assert ran.err.splitlines()[-1].startswith("vllm-codemods")
    assert snapshot(tree) == before


def break_syntax(path: Path) -> None:
    path.write_text("def f(:\n")


def break_encoding(path: Path) -> None:
    path.write_bytes(b"x = '\xe9'\n")


def put_nul(path: Path) -> None:
    path.write_bytes(path.read_bytes() + b"\x00")


def put_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


def put_fifo(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def refused_in(line: str) -> list[str]:
    """The edits that a line on stderr says are refused."""
    found = re.search(r": ([a-z-]+(?:, [a-z-]+)*) refused \(", line)
    assert found is not None, line
    return found[1].split(", ")


@pytest.mark.parametrize("breaking", [break_syntax, break_encoding, put_nul, put_folder, put_fifo])
@pytest.mark.parametrize("file", FILES)
def test_a_file_that_cannot_be_taken_in_is_a_line_and_exit_3(
    breaking: Callable[[Path], None], file: str, tree: Path
) -> None:
    breaking(tree / "vllm" / file)
    before = snapshot(tree)
    for verb in VERBS:
        ran = run(verb, tree)
        assert ran.code == 3
        lines = [one for one in ran.err.splitlines() if one.startswith("vllm-codemods: ")]
        listed = [edit for line in lines for edit in refused_in(line)]
        as_json = edits(run(verb, tree, "--json"))
        assert sorted(listed) == sorted(
            name for name, one in as_json.items() if one[0] == "refused"
        )
        assert all(
            f"vllm/{file}" in line for line in lines if "unreadable" in line or "unpars" in line
        )
        assert snapshot(tree) == before


@pytest.mark.parametrize("file", FILES)
def test_white_space_that_the_parser_would_lose_is_refused_by_every_verb(
    file: str, tree: Path
) -> None:
    path = tree / "vllm" / file
    path.write_bytes(path.read_bytes().replace(b"\nimport torch", b"\nX = 1\n\x0cimport torch"))
    before = snapshot(tree)
    assert [run(verb, tree).code for verb in VERBS] == [3, 3, 3]
    refused = [one for one in edits(run("check", tree, "--json")).values() if one[0] == "refused"]
    # A call is refused for the reason for which there is no function to call.
    assert refused == [("refused", "unparsable")] * (2 if file == WARMUP else 1)
    assert snapshot(tree) == before


def test_a_refusal_is_in_the_json_too(tree: Path) -> None:
    break_syntax(tree / "vllm" / WORKER)
    ran = run("apply", tree, "--json")
    assert (ran.code, ran.json["verdict"], ran.json["files"]) == (3, "refused", [])
    assert edits(ran)["worker"] == ("refused", "unparsable")
    assert len(ran.err.splitlines()) == 1


def without_rights(action: Callable[[], int]) -> int:
    """The exit code of `action` run by nobody, in a child that keeps its open modules."""
    import codemods.engine.git
    import codemods.output.applies
    import codemods.write
    import codemods.write.record

    assert all(
        (codemods.engine.git, codemods.output.applies, codemods.write.record, codemods.write)
    )
    child = os.fork()
    if child == 0:
        code = 99
        try:
            os.setgroups([])
            os.setgid(65534)
            os.setuid(65534)
            code = action()
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


@pytest.fixture
def open_tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tree in a folder that every user can come to."""
    root = tmp_path_factory.mktemp("open")
    # pytest-xdist puts a folder for each worker between the two.
    for folder in (root, *root.parents[:3]):
        if folder == Path(tempfile.gettempdir()):
            break
        folder.chmod(
            folder.stat().st_mode | stat.S_IXGRP | stat.S_IXOTH | stat.S_IRGRP | stat.S_IROTH
        )
    return BASE.write_to(root / "tree")


@needs_root
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_without_leave_to_write_apply_is_exit_4(open_tree: Path, tmp_path: Path) -> None:
    before = snapshot(open_tree)
    said = tmp_path / "said"
    said.touch(mode=0o666)
    said.chmod(0o666)
    stream = said.open("w")

    def action() -> int:
        with redirect_stderr(stream):
            code = main(["apply", str(open_tree)])
        stream.flush()
        return code

    assert without_rights(action) == 4
    (line,) = said.read_text().splitlines()
    assert line.startswith("vllm-codemods: ")
    assert "Permission denied" in line
    assert snapshot(open_tree) == before


@needs_root
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("file", FILES)
def test_without_leave_to_read_check_is_exit_3(file: str, open_tree: Path) -> None:
    (open_tree / "vllm" / file).chmod(0o600)

    def action() -> int:
        with redirect_stderr(io.StringIO()) as err, redirect_stdout(io.StringIO()):
            code = main(["check", str(open_tree)])
        return code if "unreadable" in err.getvalue() else 98

    assert without_rights(action) == 3


def test_two_packages_are_named_and_one_can_be_chosen(tree: Path) -> None:
    shutil.copytree(tree / "vllm", tree / "acme")
    before = snapshot(tree)
    ran = run("check", tree, "--json")
    assert ran.code == 3
    assert set(edits(ran).values()) == {("refused", "ambiguous")}
    assert "acme, vllm; choose one with --package" in ran.err
    assert len(edits(run("check", tree, "--json", "--only", "kernel"))) == 1
    assert snapshot(tree) == before
    assert run("apply", tree, "--package", "acme").code == 0
    changed = {name for name, one in snapshot(tree).items() if before.get(name) != one}
    assert changed == {f"acme/{name}" for name in FILES}


def test_a_plugins_own_kernel_is_named_with_the_command_that_edits_it(tmp_path: Path) -> None:
    text = "import triton\n@triton.jit\ndef _compute_slot_mapping_kernel(num_tokens): ...\n"
    (tmp_path / "acme.py").write_text(text)
    ran = run("check", tmp_path)
    assert ran.code == 2
    (line,) = ran.err.splitlines()
    assert "holds no vLLM package (a folder with v1/worker/gpu_worker.py); acme.py:3" in line
    assert line.endswith(f"--param num_tokens {tmp_path}/acme.py")


@pytest.mark.parametrize("name", ["03-fix-in-place"])
def test_another_hands_fix_is_already_fixed(name: str, tmp_path: Path) -> None:
    root = fork(name).tree.write_to(tmp_path / "tree")
    ran = run("apply", root, "--json")
    assert (ran.code, ran.json["verdict"], ran.json["files"]) == (0, "already-fixed", [])


@pytest.mark.parametrize("name", ["00-kernel-class", "02-native-op-only"])
def test_a_tree_that_needs_nothing_is_exit_0(name: str, tmp_path: Path) -> None:
    root = fork(name).tree.write_to(tmp_path / "tree")
    before = snapshot(root)
    assert [run(verb, root).code for verb in VERBS] == [0, 0, 0]
    assert run("diff", root).out == ""
    assert snapshot(root) == before


def git(folder: Path, *arguments: str) -> None:
    clean = {**os.environ, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
    subprocess.run(
        ["git", "-c", "user.name=t", "-c", "user.email=t@example.invalid", *arguments],
        cwd=folder, env=clean, check=True, capture_output=True,
    )  # fmt: skip


@needs_git
@pytest.mark.parametrize("file", FILES)
def test_a_merge_conflict_is_one_line_with_its_place(file: str, tree: Path) -> None:
    path = tree / "vllm" / file
    data = b"X = 0\n<<<<<<< ours\nX = 1\n=======\nX = 2\n>>>>>>> theirs\n"
    path.write_bytes(data + path.read_bytes())
    lines = run("apply", tree).err.splitlines()
    (line,) = [one for one in lines if "conflict" in one]
    assert line.endswith(f"(unparsable): unresolved merge conflict in vllm/{file}:2")


def test_uncommitted_changes_are_refused_unless_allowed(tree: Path) -> None:
    git(tree, "init", "-q")
    git(tree, "add", "-A")
    git(tree, "commit", "-q", "-m", "one")
    file = tree / "vllm" / WORKER
    file.write_bytes(file.read_bytes() + b"# mine\n")
    before = snapshot(tree)
    ran = run("apply", tree)
    assert ran.code == 3
    assert ran.err == (
        f"vllm-codemods: uncommitted changes in vllm/{WORKER}: "
        "commit or stash them, or pass --allow-dirty\n"
    )
    assert snapshot(tree) == before
    assert run("check", tree).code == 1
    assert run("apply", tree, "--only", "kernel").code == 0
    assert run("apply", tree, "--allow-dirty").code == 0
    assert file.read_bytes().endswith(b"# mine\n")


@needs_git
def test_a_commit_is_named(tree: Path) -> None:
    git(tree, "init", "-q")
    git(tree, "add", "-A")
    git(tree, "commit", "-q", "-m", "one")
    found = run("check", tree, "--json").json["tree"]
    assert len(found["commit"]) == 40
    assert found["commit"][:12] in run("check", tree).out


def test_the_module_runs_as_the_command_does(tree: Path) -> None:
    assert process("check", tree) == run("check", tree)
    assert process("check", tree, "--json") == run("check", tree, "--json")


def test_the_version_is_printed() -> None:
    ran = process("--version")
    assert ran.code == 0
    assert ran.out.startswith("vllm-codemods ")


@pytest.mark.parametrize("verb", ["", *VERBS, "verify"])
def test_help_is_on_stdout(verb: str) -> None:
    ran = run(*filter(None, [verb]), "--help")
    assert ran.code == 0
    assert "usage: vllm-codemods" in ran.out
    assert ran.err == ""


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("variables", "coloured"),
    [({}, True), ({"NO_COLOR": "1"}, False), ({"NO_COLOR": ""}, True), ({"TERM": "dumb"}, False)],
)
def test_colour_is_for_terminals_that_want_it(
    variables: dict[str, str], coloured: bool, tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    with redirect_stdout(Terminal()) as out:
        main(["check", str(tree)])
    assert ("\033[" in out.getvalue()) == coloured


def test_json_is_never_coloured(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    with redirect_stdout(Terminal()) as out:
        main(["check", str(tree), "--json"])
    assert "\033" not in out.getvalue()


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="the system has no /dev/full")
@pytest.mark.parametrize("verb", ["check", "diff"])
def test_a_full_disk_behind_stdout_is_a_line(verb: str, tree: Path) -> None:
    with open("/dev/full", "wb") as full:
        ran = process(verb, tree, stdout=full)
    assert ran.code == 2
    assert ran.err.splitlines()[-1] == "vllm-codemods: standard output: No space left on device"


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="the system has no /dev/full")
def test_what_was_written_is_said_though_stdout_is_full(tree: Path) -> None:
    with open("/dev/full", "wb") as full:
        ran = process("apply", tree, stdout=full)
    why = "standard output: No space left on device; every file is rewritten"
    assert (ran.code, ran.err) == (2, f"vllm-codemods: {why}\n")
    assert process("check", tree).code == 0


@pytest.mark.parametrize("streams", [(1,), (2,), (1, 2)])
def test_closed_streams_are_no_error(streams: tuple[int, ...], tree: Path) -> None:
    ran = process("check", tree, preexec_fn=lambda: [os.close(one) for one in streams])
    assert ran.code == 1


def test_a_reader_that_leaves_early_is_no_error(tree: Path) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    try:
        ran = process("diff", tree, stdout=writing)
    finally:
        os.close(writing)
    assert ran.code == 0
    assert "rror" not in ran.err


@pytest.mark.parametrize("encoding", ["utf-8", "ascii"])
def test_a_name_that_is_no_text_is_escaped(encoding: str, tmp_path: Path) -> None:
    name = os.fsencode(tmp_path) + b"/t\xe9\n\x1b[31m"
    BASE.write_to(Path(os.fsdecode(name)) / "vll\udce9m")
    environment = {**os.environ, "PYTHONIOENCODING": encoding}
    ran = process("check", name, env=environment)
    assert ran.code == 1
    assert ran.out.splitlines()[0] == r"vLLM in vll\udce9m/vllm: fixable"
    missing = process("check", name + b"/none", env=environment)
    assert missing.code == 2
    assert len(missing.err.splitlines()) == 1
    assert "\x1b" not in missing.err
    as_json = process("check", name, "--json", env=environment).json["tree"]
    assert as_json["package"] == "vll\udce9m/vllm"


@pytest.mark.parametrize(("verb", "code"), [("check", 1), ("diff", 0), ("apply", 0)])
def test_a_reader_that_has_gone_does_not_change_the_code(verb: str, code: int, tree: Path) -> None:
    read, write = os.pipe()
    os.close(read)
    ran = subprocess.run(
        [sys.executable, "-m", "codemods", verb, str(tree)], stdout=write, stderr=subprocess.PIPE
    )
    os.close(write)
    assert ran.returncode == code
    assert b"Traceback" not in ran.stderr


def test_a_refusal_is_reported_though_no_one_reads_the_table(tree: Path) -> None:
    worker = tree / "vllm/v1/worker/gpu_worker.py"
    worker.write_text("def f(:\n")
    read, write = os.pipe()
    os.close(read)
    ran = subprocess.run(
        [sys.executable, "-m", "codemods", "check", str(tree)],
        stdout=write,
        stderr=subprocess.PIPE,
    )
    os.close(write)
    assert ran.returncode == 3
    assert b"gpu_worker.py" in ran.stderr


@pytest.mark.parametrize("when", ["before", "after", "while-printing"])
def test_an_interrupt_says_what_it_left(
    when: str,
    tree: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    import codemods.write

    real = codemods.write.write

    def interrupted(*arguments: object) -> None:
        if when == "after":
            real(*arguments)
        raise KeyboardInterrupt

    if when == "while-printing":
        monkeypatch.setattr(codemods.cli.streams, "write", interrupted)
    else:
        monkeypatch.setattr(codemods.write, "write", interrupted)
    assert main(["apply", str(tree)]) == 130
    left = "nothing was written" if when == "before" else "every file is rewritten"
    assert capsys.readouterr().err == f"vllm-codemods: interrupted; {left}\n"


@pytest.mark.parametrize(
    "options", [["-o", "fix.patch"], ["--subject", "x"], ["--author", "a <b>"], ["--format", "git"]]
)
def test_apply_makes_no_patch(
    options: list[str], tree: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["apply", str(tree), *options]) == 2
    assert "--dry-run" in capsys.readouterr().err


def test_nothing_to_change_leaves_an_earlier_patch(
    tree: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    patch = tmp_path / "kept.patch"
    patch.write_text("kept")
    assert main(["apply", str(tree)]) == 0
    assert main(["diff", str(tree), "-o", str(patch)]) == 0
    assert patch.read_text() == "kept"
    assert "nothing to change" in capsys.readouterr().err


def test_json_and_markdown_are_not_both_printed(tree: Path) -> None:
    assert main(["check", str(tree), "--json", "--format", "markdown"]) == 2


# Python that exits while the native parser works in another thread is aborted.
INTERRUPTED_IN_THE_PARSER = """
import os, signal, sys, time
import libcst
from codemods.__main__ import main

def parse_module(*_):
    time.sleep(0.3)  # the other thread waits by now
    os.kill(os.getpid(), signal.SIGINT)
    time.sleep(1)
    print("the parser has ended", flush=True)

libcst.parse_module = parse_module
sys.exit(main())
"""
INTERRUPTED_AT_IMPORT = """
import sys
from codemods.__main__ import main

class Interrupt:
    def find_spec(self, name, *_):
        if name == "codemods.engine.planning":
            raise KeyboardInterrupt

sys.meta_path.insert(0, Interrupt())
sys.exit(main())
"""
# As Python 3.11 does where a dataclass is made: before the command begins, and later.
HIDDEN_AT_IMPORT = INTERRUPTED_AT_IMPORT.replace("raise", "raise RuntimeError('x') from")
HIDDEN_LATER = HIDDEN_AT_IMPORT.replace("engine.planning", "write")


@pytest.mark.parametrize(
    ("program", "printed"),
    [
        (INTERRUPTED_IN_THE_PARSER, "the parser has ended\n"),
        (INTERRUPTED_AT_IMPORT, ""),
        (HIDDEN_AT_IMPORT, ""),
        (HIDDEN_LATER, ""),
    ],
)
def test_an_interrupt_at_any_time_is_one_line(program: str, printed: str, tree: Path) -> None:
    files = {path: path.read_bytes() for path in tree.rglob("*") if path.is_file()}
    ran = subprocess.run(
        [sys.executable, "-c", program, "apply", str(tree)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (ran.returncode, ran.stdout) == (130, printed), ran.stderr
    assert len(ran.stderr.splitlines()) == 1
    assert "interrupted" in ran.stderr
    assert files == {path: path.read_bytes() for path in tree.rglob("*") if path.is_file()}


@pytest.mark.parametrize(
    ("options", "statuses", "code"),
    [
        ((), ("pass", "skipped"), 0),
        (("--strict",), ("pass", "skipped"), 1),
        (("--strict",), ("pass", "pass"), 0),
        ((), ("fail", "pass"), 1),
    ],
)
def test_a_skipped_row_fails_verify_where_it_is_strict(
    options: tuple[str, ...],
    statuses: tuple[str, ...],
    code: int,
    tree: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    proofs = iter([Proof("made-up", ProofStatus(one), "so") for one in statuses])
    row = Row("made-up", lambda *_: next(proofs))
    monkeypatch.setattr(
        "codemods.prove.rows.rows",
        lambda plan, checkout, _: [(Subject(plan, checkout), row)] * len(statuses),
    )
    ran = run("verify", tree, *options)
    assert ran.code == code
    assert ("with --strict a skipped row fails" in ran.out) == (
        code == 1 and "fail" not in statuses
    )
