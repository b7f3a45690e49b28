"""Which kernels compute_slot_mapping launches, however it calls them."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent

import pytest

from codemods.engine.sources import SourceFile, Sources
from codemods.recipes.warm_up.launches import find, jitted_functions
from tests.checkouts import checkout
from tests.recipes.warm_up.checkouts import BLOCK_TABLE, KERNEL, block_table, launches

LAUNCH = "_slots_kernel[(num_reqs,)](1, 2, SIZE=3)"
PLAIN = "def _slots_kernel(num_tokens):\n    pass\n"


def found(root: Path, text: str, files: dict[str, str] | None = None) -> list[str]:
    return [f"{one.file.name}:{one.name}" for one in launches(root, text, files).kernels]


HERE = ["vllm/v1/worker/block_table.py:_slots_kernel"]


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(block_table(LAUNCH), id="launched"),
        pytest.param(
            block_table("grid = (1,)\n_slots_kernel[grid](num_tokens=1)"), id="grid named"
        ),
        pytest.param(block_table("_slots_kernel.run(1, grid=(1,))"), id="run"),
        pytest.param(block_table("launch(_slots_kernel, 1)"), id="handed to another"),
        pytest.param(block_table("kernel = _slots_kernel\nkernel[(1,)](1)"), id="another name"),
        pytest.param(block_table(f"if self.on:\n    {LAUNCH}\nelse:\n    pass"), id="behind if"),
        pytest.param(
            block_table(f"def inner():\n    {LAUNCH}\ninner()"), id="in a nested function"
        ),
        pytest.param(block_table(f"with x:\n    for y in z:\n        {LAUNCH}"), id="in blocks"),
        pytest.param(
            block_table("self._launch(1)", members=f"def _launch(self, n):\n    {LAUNCH}"),
            id="through a method",
        ),
        pytest.param(
            block_table("_launch(1)", f"{KERNEL}\n    def _launch(n):\n        {LAUNCH}\n"),
            id="through a function",
        ),
        pytest.param(
            block_table("self.kernel[(1,)](1)", members="kernel = None").replace(
                "kernel = None", "kernel = _slots_kernel"
            ),
            id="class attribute",
        ),
        pytest.param(
            block_table(
                "self.kernel[(1,)](1)",
                members="def __init__(self):\n    self.kernel = _slots_kernel",
            ),
            id="instance attribute",
        ),
        pytest.param(
            block_table("launch[(1,)](1)", f"{KERNEL}\n    launch = _slots_kernel\n"),
            id="module alias",
        ),
        pytest.param(
            block_table("self._base_launch()").replace(
                "class BlockTable:",
                "class Base:\n    "
                f"def _base_launch(self):\n        {LAUNCH}\n\n\nclass BlockTable(Base):",
            ),
            id="inherited method",
        ),
        pytest.param(
            block_table(LAUNCH, "if True:\n    @triton.jit\n    " + PLAIN.replace("\n", "\n    ")),
            id="defined behind if",
        ),
        pytest.param(
            block_table(LAUNCH, f"@triton.autotune(configs=[], key=[])\n@triton.jit\n{PLAIN}"),
            id="stacked decorators",
        ),
    ],
)
def test_a_kernel_of_the_module_is_found(text: str, tmp_path: Path) -> None:
    assert found(tmp_path, text) == HERE


@pytest.mark.parametrize(
    ("head", "launch"),
    [
        ("from vllm.kernels import _slots_kernel", LAUNCH),
        ("from vllm.kernels import _slots_kernel as kernel", "kernel[(1,)](1)"),
        ("from ...kernels import _slots_kernel", LAUNCH),
        ("from vllm import kernels", "kernels._slots_kernel[(1,)](1)"),
        ("from ... import kernels", "kernels._slots_kernel[(1,)](1)"),
        ("import vllm.kernels as kernels", "kernels._slots_kernel[(1,)](1)"),
        ("import vllm.kernels", "vllm.kernels._slots_kernel[(1,)](1)"),
        ("", "from vllm.kernels import _slots_kernel\n_slots_kernel[(1,)](1)"),
        ("from vllm.kernels import launch", "launch(1)"),
        ("from vllm.again import _slots_kernel", LAUNCH),
        ("from vllm.folder import _slots_kernel", LAUNCH),
    ],
)
def test_a_kernel_of_another_module_of_the_package_is_found(
    head: str, launch: str, tmp_path: Path
) -> None:
    kernels = f"import triton\n\n\n@triton.jit\n{PLAIN}"
    files = {
        "kernels.py": f"{kernels}\n\ndef launch(n):\n    _slots_kernel[(1,)](n)\n",
        "again.py": "from .kernels import _slots_kernel\n",
        "folder/__init__.py": "from ..again import _slots_kernel\n",
    }
    assert found(tmp_path, block_table(launch, "", head=head), files) == [
        "vllm/kernels.py:_slots_kernel"
    ]


def test_every_kernel_is_found_in_the_order_of_its_launches(tmp_path: Path) -> None:
    names = ("_first_kernel", "_many_kernel", "_one_kernel")
    kernels = "\n\n".join(f"@triton.jit\ndef {name}(num_tokens):\n    pass" for name in names)
    launch = """
        if self.seen:
            if num_reqs == 1:
                return _one_kernel[(1,)](1)
            return _many_kernel[(num_reqs,)](1)
        _first_kernel[(num_reqs,)](1)
        """
    one = found(tmp_path, block_table(launch, kernels))
    assert [name.split(":")[1] for name in one] == ["_one_kernel", "_many_kernel", "_first_kernel"]


def test_both_definitions_of_a_name_belong_to_the_kernel(tmp_path: Path) -> None:
    rest = "\n".join(
        f"{word}:\n    @triton.jit\n    def _slots_kernel(num_tokens):\n        pass\n"
        for word in ("if triton", "else")
    )
    (kernel,) = launches(tmp_path, block_table(LAUNCH, rest)).kernels
    assert len(kernel.definitions) == 2


def test_both_definitions_of_a_method_belong_to_the_kernel(tmp_path: Path) -> None:
    members = "\n".join(
        f"{word}:\n    @staticmethod\n    @triton.jit\n    def _kernel(num_tokens):\n        pass\n"
        for word in ("if triton", "else")
    )
    text = block_table("self._kernel[(1,)](1)", "", members=members)
    (kernel,) = launches(tmp_path, text).kernels
    assert len(kernel.definitions) == 2


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(block_table("pass"), id="nothing launched"),
        pytest.param(block_table("# _slots_kernel[(1,)](1)\npass"), id="in a comment"),
        pytest.param(block_table("'_slots_kernel[(1,)](1)'"), id="in a string"),
        pytest.param(block_table("_slots_kernels[(1,)](1)"), id="plural"),
        pytest.param(block_table("self.native(1)"), id="unknown method"),
        pytest.param(block_table("ops.slots(1)", head="import ops"), id="native op"),
        pytest.param(block_table("np.add(1)\nself.np[0] = 1"), id="NumPy"),
        pytest.param(block_table(LAUNCH, PLAIN), id="a function that is not jitted"),
        pytest.param(
            block_table(LAUNCH, f"@numba.jit\n{PLAIN}", head="import numba"), id="another jit"
        ),
        pytest.param(
            block_table("pass", members=f"def compute_other(self):\n    {LAUNCH}"),
            id="launched by another method",
        ),
        pytest.param(block_table(LAUNCH).replace("BlockTable", "Table"), id="no BlockTable"),
        pytest.param(
            block_table(LAUNCH).replace("compute_slot_mapping", "compute_slots"), id="no method"
        ),
        pytest.param("", id="empty module"),
    ],
)
def test_what_is_not_launched_is_not_found(text: str, tmp_path: Path) -> None:
    assert found(tmp_path, text) == []


@pytest.mark.parametrize(
    ("launch", "head", "message"),
    [
        ("acme.kernel[(1,)](1)", "import acme", "acme.kernel"),
        ("kernel[(1,)](1)", "from acme import kernel", "kernel"),
        ("kernel[(1,)](1)", "from vllm.missing import kernel", "kernel"),
        ("self.kernel[(1,)](1)", "", "self.kernel"),
        ("KERNELS[0][(1,)](1)", "", "KERNELS[0]"),
    ],
)
def test_a_launch_that_leads_out_of_the_package_is_reported(
    launch: str, head: str, message: str, tmp_path: Path
) -> None:
    one = launches(tmp_path, block_table(launch, head=head))
    assert one.kernels == ()
    assert one.unresolved == (message,)


@pytest.mark.parametrize("launch", ["self.slots[0].add(1)", "x[0].y(1)", "self.np[0] = x[1]"])
def test_a_subscript_is_not_a_launch(launch: str, tmp_path: Path) -> None:
    assert launches(tmp_path, block_table(launch)).unresolved == ()


UPSTREAM = """
    class SlotsKernel:
        @staticmethod
        @triton.jit(do_not_specialize=["num_tokens"])
        def kernel(num_tokens):
            pass

        def __call__(self, n):
            self.kernel[(1,)](n)


    slots_kernel = SlotsKernel()
    """


REGISTERS = "def __init__(self):\n    slots_kernel.register_warmup(self.block_size)"


def test_a_kernel_class_is_upstreams_own_fix(tmp_path: Path) -> None:
    one = launches(tmp_path, block_table("slots_kernel(1)", UPSTREAM, members=REGISTERS))
    assert one.kernel_class == "slots_kernel"
    assert one.kernels == ()


@pytest.mark.parametrize(
    "constructor",
    ["", "def __init__(self):\n    self.register_buffer(1)\n    slots_kernel.keys(1)"],
)
def test_a_kernel_class_that_registers_no_keys_is_not(constructor: str, tmp_path: Path) -> None:
    one = launches(tmp_path, block_table("slots_kernel(1)", UPSTREAM, members=constructor))
    assert one.kernel_class is None
    assert one.unresolved == ("slots_kernel",)


@pytest.mark.parametrize(
    ("head", "decorator"),
    [
        ("import triton_ascend as triton", "triton.jit"),
        ("triton = LazyLoader('triton')", "triton.jit"),
        ("from acme import traced", "traced"),
        ("jit = cached(triton.jit)", "jit"),
        ("", ""),
    ],
)
def test_a_function_that_is_launched_is_some_kernel(
    head: str, decorator: str, tmp_path: Path
) -> None:
    rest = f"{f'@{decorator}' if decorator else ''}\n{PLAIN}"
    text = block_table(LAUNCH, rest, head=head)
    if head != "jit = cached(triton.jit)":
        text = text.replace("from vllm.triton_utils import tl, triton\n", "")
    one = launches(tmp_path, text)
    assert one.kernels == ()
    assert one.unresolved == ("_slots_kernel",)


def test_a_local_name_that_leads_to_no_kernel_is_reported(tmp_path: Path) -> None:
    one = launches(tmp_path, block_table("kernel = KERNELS['slots']\nkernel[(1,)](1)"))
    assert one.unresolved == ("kernel",)


def test_a_kernel_class_that_is_not_called_is_not(tmp_path: Path) -> None:
    one = launches(tmp_path, block_table(LAUNCH, UPSTREAM + KERNEL))
    assert one.kernel_class is None
    assert [kernel.name for kernel in one.kernels] == ["_slots_kernel"]


@pytest.mark.parametrize(
    "text",
    [
        block_table("self.compute_slot_mapping(1, 2, 3)"),
        block_table("_again()", "def _again():\n    _again()\n"),
        block_table("a[(1,)](1)", "a = b\nb = a\n"),
        block_table("self.a()", members="a = b\nb = a"),
        block_table("pass").replace("class BlockTable:", "class BlockTable(BlockTable):"),
        block_table("x()", head="from vllm.v1.worker.block_table import x"),
        block_table("x()", head="from .block_table import y as x\nfrom .block_table import x as y"),
    ],
    ids=[
        "itself",
        "function",
        "aliases",
        "attributes",
        "its own base",
        "its own module",
        "imports",
    ],
)
def test_circles_end(text: str, tmp_path: Path) -> None:
    assert found(tmp_path, text) == []


@pytest.mark.parametrize(
    ("text", "parsed"),
    [
        ("PAD = -1\n", False),
        ("PAD: int = 7  # slots\r\n", False),
        ("if x:\n    PAD = -1\n", True),
        ("", True),
        ("OTHER = 1\n", True),
        ("PAD = -1\nPAD = kernel\n", True),
        ("PAD = kernel\n", True),
        ("PAD = 1 if x else kernel\n", True),
        ("PAD = 1\ndef PAD(): pass\n", True),
        ("PAD = 1\nfrom x import (y, PAD)\n", True),
        ("PADDED = 1\n", True),
    ],
)
def test_a_module_is_not_parsed_for_a_number(text: str, parsed: bool, tmp_path: Path) -> None:
    sources = Sources(
        checkout(
            tmp_path,
            {
                BLOCK_TABLE: block_table(f"{LAUNCH}\nuse(PAD)", head="from vllm.big import PAD"),
                "big.py": text,
            },
        )
    )
    file, big = sources.read(BLOCK_TABLE), sources.read("big.py")
    assert file is not None
    assert big is not None
    assert [
        kernel.name for kernel in find(sources, file, "BlockTable", "compute_slot_mapping").kernels
    ] == ["_slots_kernel"]
    assert ("module" in vars(big)) == parsed


def test_every_jitted_function_of_a_module_is_listed() -> None:
    file = SourceFile(
        "x.py", block_table("pass", f"{KERNEL}\n    def plain():\n        pass").encode()
    )
    assert [one.name.value for one in jitted_functions(file)] == ["_slots_kernel"]


TWICE = "_k[(1,)](1)\n_k[(2,)](2)"


@pytest.mark.parametrize(
    ("head", "launch", "home"),
    [
        ("from . import slots", "slots._k[(1,)](1)", "vllm/v1/worker/slots.py"),
        ("from .. import slots", "slots._k[(1,)](1)", "vllm/v1/slots.py"),
        ("from vllm.more import _k", TWICE, "vllm/v1/slots.py"),
        ("from .stars import *", TWICE, "vllm/v1/slots.py"),
        ("from .slots import _k as one\n_k = one", TWICE, "vllm/v1/worker/slots.py"),
    ],
)
def test_a_kernel_is_found_however_often_it_is_launched(
    head: str, launch: str, home: str, tmp_path: Path
) -> None:
    kernel = "import triton\n@triton.jit\ndef _k(num_tokens): ...\n"
    files = {
        "v1/worker/slots.py": kernel,
        "v1/slots.py": kernel,
        "more.py": "from .v1.slots import _k\n",
        "v1/worker/stars.py": "from vllm.more import *\n",
    }
    one = launches(tmp_path, block_table(launch, rest="", head=head), files)
    assert [f"{kernel.file.name}:{kernel.name}" for kernel in one.kernels] == [f"{home}:_k"]
    assert one.unresolved == ()


DERIVED = "class BlockTable(Base):\n    def compute_slot_mapping(self, *a):\n"
BASE = "class Base:\n    def compute_slot_mapping(self, *a):\n        _slots_kernel[(1,)](1)\n\n\n"


@pytest.mark.parametrize(
    ("own", "found"),
    [
        ("class BlockTable(Base):\n    pass\n", True),
        (f"{DERIVED}        super().compute_slot_mapping(*a)\n", True),
        (f"{DERIVED}        pass\n", False),
    ],
)
def test_a_method_of_a_base_counts_where_it_is_reached(
    own: str, found: bool, tmp_path: Path
) -> None:
    text = block_table("pass").split("class BlockTable")[0] + BASE + own + dedent(KERNEL)
    assert [one.name for one in launches(tmp_path, text).kernels] == ["_slots_kernel"] * found
