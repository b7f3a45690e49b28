"""What is Triton's jit, and what is a constexpr, where a kernel is defined."""

from __future__ import annotations

import inspect

import libcst as cst
import pytest

from codemods.transforms import names
from codemods.transforms.jit import Scope, parameters

Definition = cst.FunctionDef | cst.ClassDef


def kernel(text: str) -> tuple[Scope, cst.FunctionDef]:
    """The function `k` of a module, and its scope."""
    module = cst.parse_module(inspect.cleandoc(text) + "\n")
    found: list[tuple[Scope, cst.FunctionDef]] = []

    def search(body: cst.Module | cst.BaseSuite, around: list[Definition]) -> None:
        for node in names.walk(body):
            if isinstance(node, (cst.FunctionDef, cst.ClassDef)):
                if node.name.value == "k" and isinstance(node, cst.FunctionDef):
                    found.append((Scope.of(module, around), node))
                search(node.body, [*around, node])

    search(module, [])
    ((scope, function),) = found
    return scope, function


def is_jitted(text: str) -> bool:
    scope, function = kernel(text)
    return any(scope.is_jit(one.decorator) for one in function.decorators)


JITTED = {
    "runtime-module": "import triton\n@triton.runtime.jit.jit\ndef k(n): ...",
    "runtime-import": "from triton.runtime.jit import jit\n@jit\ndef k(n): ...",
    "runtime-alias": "import triton.runtime.jit as tj\n@tj.jit\ndef k(n): ...",
    "assigned": "import triton\njit = triton.jit\n@jit(debug=True)\ndef k(n): ...",
    "assigned-twice-over": "import triton as t\ntt = t\nfast = tt.jit\n@fast\ndef k(n): ...",
    "none-where-it-is-missing": """
        try:
            import triton
        except ImportError:
            triton = None
        if triton is not None:
            @triton.jit
            def k(n): ...
    """,
    "two-ways-to-triton": """
        try:
            from vllm.triton_utils import triton
        except ImportError:
            import triton
        @triton.jit
        def k(n): ...
    """,
    "imported-in-the-function": """
        def make():
            import triton as tr
            @tr.jit
            def k(n): ...
    """,
    "imported-in-an-outer-function": """
        def make():
            from triton import jit
            class Kernels:
                def inner(self):
                    @jit
                    def k(n): ...
    """,
    "assigned-in-the-class": """
        import triton
        class Kernels:
            jit = triton.jit
            @jit
            def k(n): ...
    """,
    "star": "from acme import *\n@triton.jit\ndef k(n): ...",
}


@pytest.mark.parametrize("text", JITTED.values(), ids=JITTED)
def test_a_name_is_followed_to_tritons_jit(text: str) -> None:
    assert is_jitted(text)


# In each, a call with arguments may meet something else than Triton's jit, or always does.
OTHERS = {
    "the-module-runtime-jit": "import triton\n@triton.runtime.jit\ndef k(n): ...",
    "assigned-from-another": "import numba\njit = numba.jit\n@jit\ndef k(n): ...",
    "a-function-where-it-is-missing": """
        try:
            from triton import jit
        except ImportError:
            def jit(function): return function
        @jit
        def k(n): ...
    """,
    "a-class-where-it-is-missing": """
        try:
            import triton
        except ImportError:
            class triton:
                jit = staticmethod(lambda function: function)
        @triton.jit
        def k(n): ...
    """,
    "a-call": "triton = lazy('triton')\n@triton.jit\ndef k(n): ...",
    "bound-twice": "import triton\njit = triton.jit\njit = cached(jit)\n@jit\ndef k(n): ...",
    "an-argument": "import triton\ndef make(triton):\n    @triton.jit\n    def k(n): ...",
    "hidden-in-the-function": """
        from triton import jit
        def make():
            from numba import jit
            @jit
            def k(n): ...
    """,
    "of-a-class-about-the-method": """
        class Kernels:
            from triton import jit
            def make(self):
                @jit
                def k(n): ...
    """,
    "imported-in-another-function": """
        def other():
            from triton import jit
        @jit
        def k(n): ...
    """,
    "unpacked": "import triton\ntriton, found = load()\n@triton.jit\ndef k(n): ...",
}


@pytest.mark.parametrize("text", OTHERS.values(), ids=OTHERS)
def test_what_may_be_something_else_is_not_tritons_jit(text: str) -> None:
    assert not is_jitted(text)


@pytest.mark.parametrize(
    ("annotation", "head", "expected"),
    [
        ("tl.constexpr", "", True),
        ("constexpr", "", True),
        ("triton.language.constexpr", "", True),
        ('"tl.constexpr"', "", True),
        ('"tl.constexpr | int"', "", True),
        ('"tl.const" "expr"', "", True),
        ("tl.constexpr | None", "", True),
        ("Optional[tl.constexpr]", "", True),
        ('Annotated[int, "constexpr"]', "", True),
        ("my_constexpr_type", "", True),
        ("ce", "from triton.language import constexpr as ce", True),
        ("CE", "CE = tl.constexpr", True),
        ("CE", 'CE = "tl.constexpr"', True),
        ("CE", "CE = Optional[tl.constexpr]", True),
        ("tl.int32", "", False),
        ("int", "", False),
        ('"int"', "", False),
        ("tl.const", "", False),
        ("Const", "from acme.constexprs import Const", False),
        ("CE", "CE = tl.int32\nOTHER = tl.constexpr", False),
    ],
)
def test_constexpr_is_what_triton_takes_for_it(annotation: str, head: str, expected: bool) -> None:
    scope, function = kernel(f"{head}\ndef k(n: {annotation}): ...")
    assert [scope.is_constexpr(one) for one in parameters(function)] == [expected]


def test_a_bare_parameter_is_no_constexpr() -> None:
    scope, function = kernel("def k(n): ...")
    assert not scope.is_constexpr(function.params.params[0])
