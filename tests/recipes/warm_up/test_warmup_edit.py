"""What a recipe's function does to the worker's warm-up module."""

from __future__ import annotations

import re

import pytest

from codemods.engine.plan import Reason, Status
from codemods.engine.sources import Edited, Refusal, SourceFile
from codemods.recipes.warm_up import warmup_edit
from tests.forks.trees import WARMUP, fork
from tests.rewriting import leaves_alone, rewrites, sound

MODULE = fork("00-no-monitor").tree.inside[WARMUP].decode()
FUNCTION = "warm_it"
TEXT = '''@torch.inference_mode()
def warm_it(model_runner: Any) -> None:
    """Run it once."""
    model_runner.run()
'''


def edit(data: bytes) -> Edited:
    file = warmup_edit.required(SourceFile("warmup.py", data), "warmup.py", FUNCTION)
    return warmup_edit.present(file, FUNCTION) or warmup_edit.add(file, FUNCTION, TEXT, "runs it")


def rewrite(data: bytes) -> bytes:
    changed = edit(data).module
    return data if changed is None else changed.bytes


def refusal(data: bytes) -> Refusal:
    with pytest.raises(Refusal) as caught:
        edit(data)
    return caught.value


def test_the_function_is_put_at_the_end() -> None:
    rewrites(rewrite, MODULE, f"{MODULE}\n\n{TEXT}")
    assert edit(MODULE.encode()).outcome.detail == "warm_it runs it"


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(lambda data: data.replace(b"\n", b"\r\n"), id="CRLF"),
        pytest.param(lambda data: b"\xef\xbb\xbf" + data, id="BOM"),
        pytest.param(lambda data: b"# coding: latin-1\n# \xe9\n" + data, id="latin-1"),
        pytest.param(lambda data: data.replace(b"    ", b"\t"), id="tabs"),
        pytest.param(lambda data: data.rstrip(), id="no last line end"),
        pytest.param(lambda data: data + b"\n# the end\n", id="comment at the end"),
        pytest.param(lambda data: data.replace(b"from typing import Any\n", b""), id="no Any"),
        pytest.param(
            lambda data: data.replace(b"import Any", b"import NamedTuple"), id="another of typing"
        ),
        pytest.param(
            lambda data: data.replace(b"import Any", b"import (\n    Literal,  # why\n)"),
            id="typing in lines",
        ),
    ],
)
def test_what_is_in_the_file_stays(change: object) -> None:
    assert callable(change)
    was = change(MODULE.encode())
    now = rewrite(was)
    assert now.startswith(b"\xef\xbb\xbf") == was.startswith(b"\xef\xbb\xbf")
    assert b"def warm_it(" in now
    assert re.search(rb"import \(?\s*[^)\n]*Any|^    Any", now, re.MULTILINE)
    sound(rewrite, was, now)


def test_a_function_of_the_name_is_left_alone() -> None:
    for body in ("    pass\n", "    return other(model_runner)\n"):
        data = f"{MODULE}\n\ndef {FUNCTION}(model_runner):\n{body}"
        leaves_alone(rewrite, data)
        one = edit(data.encode()).outcome
        assert (one.status, one.reason) == (Status.PRESENT, Reason.ALREADY_PRESENT)
        assert one.line == MODULE.count("\n") + 3


def test_a_function_behind_if_is_there_too() -> None:
    leaves_alone(rewrite, f"{MODULE}\n\nif torch:\n    def {FUNCTION}(runner):\n        pass\n")


@pytest.mark.parametrize(
    "more",
    [
        f"# {FUNCTION}(model_runner)\n",
        f"TEXT = '{FUNCTION}'\n",
        f"def {FUNCTION}_2(runner):\n    pass\n",
        f"class A:\n    def {FUNCTION}(self):\n        pass\n",
    ],
)
def test_a_mere_mention_is_not_the_function(more: str) -> None:
    data = f"{MODULE}\n\n{more}".encode()
    assert edit(data).outcome.status is Status.EDIT


def test_a_tree_without_the_module_is_refused() -> None:
    with pytest.raises(Refusal) as caught:
        warmup_edit.required(None, "warmup.py", FUNCTION)
    assert caught.value.reason is Reason.NO_WARMUP_MODULE
    assert "--only kernel" in caught.value.detail


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("import torch\n", ""),
        ("import torch\n", "import torch as th\n"),
        ("import torch\n", "if TYPE_CHECKING:\n    import torch\n"),
        ("import torch\n", "if typing.TYPE_CHECKING:\n    import torch\n"),
        ("import torch\n", "def f():\n    import torch\n"),
    ],
)
def test_a_module_that_does_not_bind_torch_is_refused(old: str, new: str) -> None:
    one = refusal(MODULE.replace(old, new).encode())
    assert one.reason is Reason.NO_ANCHOR
    assert "import torch" in one.detail


@pytest.mark.parametrize("test", ["TYPE_CHECKING", "typing.TYPE_CHECKING"])
def test_a_name_for_the_type_checker_alone_is_imported_for_all(test: str) -> None:
    was = MODULE.replace(
        "from typing import Any\n", f"import typing\n\nif {test}:\n    from typing import Any\n"
    )
    now = rewrite(was.encode()).decode()
    assert now.count("import Any\n") == 2
    assert re.search(r"^from typing import Any$", now, re.MULTILINE)
    sound(rewrite, was.encode(), now.encode())


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_a_text_is_known_again(end: str) -> None:
    now = SourceFile("w.py", rewrite(MODULE.replace("\n", end).encode()))
    assert warmup_edit.has_text(now, FUNCTION, ["def warm_it(): ...\n", TEXT])
    assert not warmup_edit.has_text(now, FUNCTION, ["def warm_it(): ...\n"])


def test_what_is_not_there_once_is_not_known() -> None:
    assert not warmup_edit.has_text(SourceFile("w.py", MODULE.encode()), FUNCTION, [TEXT])
    twice = SourceFile("w.py", f"{MODULE}\n\n{TEXT}\n\n{TEXT}".encode())
    assert not warmup_edit.has_text(twice, FUNCTION, [TEXT])
