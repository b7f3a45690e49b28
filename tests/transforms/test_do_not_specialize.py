"""Each shape that a jit decorator has, with the result."""

from __future__ import annotations

import inspect

import libcst as cst
import pytest

from codemods.transforms import source
from codemods.transforms.do_not_specialize import AddDoNotSpecialize, Merge
from tests.rewriting import leaves_alone, rewrites

KERNEL = "def k(n, x):\n    pass\n"


def transformer(module: cst.Module) -> AddDoNotSpecialize:
    return AddDoNotSpecialize(module, "k", "n")


def rewrite(data: bytes) -> bytes:
    module = source.parse(data)
    return module.visit(transformer(module)).bytes


def merges(text: str) -> list[Merge]:
    module = source.parse(text.encode())
    adding = transformer(module)
    module.visit(adding)
    return adding.merges


def decorated(decorator: str, constants: str = "") -> str:
    return f"import triton\n\n{constants}\n{decorator}\n{KERNEL}"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        pytest.param("@triton.jit", '@triton.jit(do_not_specialize=["n"])', id="bare"),
        pytest.param("@triton.jit()", '@triton.jit(do_not_specialize=["n"])', id="called"),
        pytest.param(
            "@triton.jit( )", '@triton.jit( do_not_specialize=["n"])', id="called, a space in it"
        ),
        pytest.param(
            "@triton.jit  # hot", '@triton.jit(do_not_specialize=["n"])  # hot', id="comment"
        ),
        pytest.param(
            "@(triton.jit)", '@(triton.jit)(do_not_specialize=["n"])', id="in parentheses"
        ),
        pytest.param(
            "@triton.jit(do_not_specialize=[])",
            '@triton.jit(do_not_specialize=["n"])',
            id="empty list",
        ),
        pytest.param(
            "@triton.jit(do_not_specialize=())",
            '@triton.jit(do_not_specialize=("n",))',
            id="empty tuple",
        ),
        pytest.param(
            '@triton.jit(do_not_specialize=["x"])',
            '@triton.jit(do_not_specialize=["x", "n"])',
            id="list",
        ),
        pytest.param(
            "@triton.jit(do_not_specialize=['x'])",
            "@triton.jit(do_not_specialize=['x', 'n'])",
            id="list in single quotes",
        ),
        pytest.param(
            '@triton.jit(do_not_specialize=["x",])',
            '@triton.jit(do_not_specialize=["x", "n",])',
            id="list with a last comma",
        ),
        pytest.param(
            '@triton.jit(do_not_specialize=[ "x" ])',
            '@triton.jit(do_not_specialize=[ "x", "n" ])',
            id="list with spaces inside",
        ),
        pytest.param(
            '@triton.jit(do_not_specialize=("x",))',
            '@triton.jit(do_not_specialize=("x", "n"))',
            id="tuple of one",
        ),
        pytest.param(
            '@triton.jit(do_not_specialize=("x", "y"))',
            '@triton.jit(do_not_specialize=("x", "y", "n"))',
            id="tuple of two",
        ),
        pytest.param(
            '@triton.jit(do_not_specialize=("x", "y",))',
            '@triton.jit(do_not_specialize=("x", "y", "n",))',
            id="tuple of two with a last comma",
        ),
        pytest.param(
            "@triton.jit(do_not_specialize=[1])",
            '@triton.jit(do_not_specialize=[1, "n"])',
            id="position of another",
        ),
        pytest.param(
            '@triton.jit(do_not_specialize=["x"] + ["y"])',
            '@triton.jit(do_not_specialize=[*["x"] + ["y"], "n"])',
            id="sum of lists",
        ),
        pytest.param(
            '@triton.jit(do_not_specialize=[*("x", "y")])',
            '@triton.jit(do_not_specialize=[*("x", "y"), "n"])',
            id="starred tuple",
        ),
        pytest.param(
            '@triton.jit(do_not_specialize={"x"})',
            '@triton.jit(do_not_specialize=[*{"x"}, "n"])',
            id="set",
        ),
        pytest.param(
            "@triton.jit(debug=True)",
            '@triton.jit(debug=True, do_not_specialize=["n"])',
            id="other keyword",
        ),
        pytest.param(
            '@triton.jit(do_not_specialize=["x"], debug=True)',
            '@triton.jit(do_not_specialize=["x", "n"], debug=True)',
            id="other keyword behind",
        ),
        pytest.param(
            '@triton.jit(do_not_specialize_on_alignment=["n"])',
            '@triton.jit(do_not_specialize_on_alignment=["n"], do_not_specialize=["n"])',
            id="keyword with a longer name",
        ),
        pytest.param(
            '@triton.autotune(configs=[], key=["x"])\n@triton.jit',
            '@triton.autotune(configs=[], key=["x"])\n@triton.jit(do_not_specialize=["n"])',
            id="below autotune",
        ),
        pytest.param(
            '@triton.heuristics({"B": lambda args: 1})\n# why\n@triton.jit',
            '@triton.heuristics({"B": lambda args: 1})\n'
            '# why\n@triton.jit(do_not_specialize=["n"])',
            id="below heuristics and a comment",
        ),
        pytest.param(
            "@triton.jit\n@staticmethod",
            '@triton.jit(do_not_specialize=["n"])\n@staticmethod',
            id="above another",
        ),
    ],
)
def test_the_parameter_joins_the_decorator(before: str, after: str) -> None:
    rewrites(rewrite, decorated(before), decorated(after))


def test_none_becomes_a_list() -> None:
    rewrites(
        rewrite,
        decorated("@triton.jit(do_not_specialize=None)"),
        decorated('@triton.jit(do_not_specialize=["n"])'),
        loses="None",
    )


@pytest.mark.parametrize(
    "constant",
    ['FIXED = ["x"]\n', 'FIXED: list[str] = ["x"]\n', 'OTHER = ("x",)\nFIXED = OTHER\n'],
    ids=["list", "annotated", "named twice"],
)
def test_a_constant_is_spread_and_left_as_it_is(constant: str) -> None:
    rewrites(
        rewrite,
        decorated("@triton.jit(do_not_specialize=FIXED)", constant),
        decorated('@triton.jit(do_not_specialize=[*FIXED, "n"])', constant),
    )


@pytest.mark.parametrize(
    ("before", "after"),
    [
        pytest.param(
            """
            @triton.jit(
                debug=True,  # while it is new
            )
            """,
            """
            @triton.jit(
                debug=True,  # while it is new
                do_not_specialize=["n"],
            )
            """,
            id="keyword with a comment",
        ),
        pytest.param(
            """
            @triton.jit(  # see the docs
                # first
                debug=True,
                # last
            )
            """,
            """
            @triton.jit(  # see the docs
                # first
                debug=True,
                # last
                do_not_specialize=["n"],
            )
            """,
            id="comments on lines of their own",
        ),
        pytest.param(
            """
            @triton.jit(
                debug=True
            )
            """,
            """
            @triton.jit(
                debug=True, do_not_specialize=["n"]
            )
            """,
            id="no last comma",
        ),
        pytest.param(
            """
            @triton.jit(
                do_not_specialize=[
                    "x",  # varies with the batch
                ],
                debug=True,
            )
            """,
            """
            @triton.jit(
                do_not_specialize=[
                    "x",  # varies with the batch
                    "n",
                ],
                debug=True,
            )
            """,
            id="exploded list with a comment",
        ),
        pytest.param(
            """
            @triton.jit(
                do_not_specialize=[
                    # varies with the batch
                    "x",
                    # and nothing else does
                ]
            )
            """,
            """
            @triton.jit(
                do_not_specialize=[
                    # varies with the batch
                    "x",
                    # and nothing else does
                    "n",
                ]
            )
            """,
            id="exploded list, comments of their own",
        ),
        pytest.param(
            """
            @triton.jit(
                do_not_specialize=(
                    "x",
                    "y",
                )
            )
            """,
            """
            @triton.jit(
                do_not_specialize=(
                    "x",
                    "y",
                    "n",
                )
            )
            """,
            id="exploded tuple",
        ),
        pytest.param(
            """
            @triton.jit(
                do_not_specialize=[
                    # nothing varies
                ]
            )
            """,
            """
            @triton.jit(
                do_not_specialize=[
                    # nothing varies
                    "n",
                ]
            )
            """,
            id="empty list with a comment",
        ),
        pytest.param(
            """
            @triton.jit(
                # no settings yet
            )
            """,
            """
            @triton.jit(
                # no settings yet
                do_not_specialize=["n"],
            )
            """,
            id="empty call with a comment",
        ),
    ],
)
def test_lines_and_comments_are_kept(before: str, after: str) -> None:
    text = "import triton\n\n\n{}" + KERNEL
    rewrites(
        rewrite,
        text.format(_block(before)),
        text.format(_block(after)),
    )


def _block(text: str) -> str:
    lines = text.removeprefix("\n").rstrip(" ").split("\n")
    return "\n".join(line.removeprefix(" " * 12) for line in lines)


@pytest.mark.parametrize(
    ("imported", "decorator"),
    [
        ("import triton as tr", "@tr.jit"),
        ("from triton import jit", "@jit"),
        ("from triton import jit as compiled", "@compiled"),
        ("from vllm.triton_utils import triton", "@triton.jit"),
        ("from ..triton_utils import triton as t", "@t.jit"),
        ("from acme.triton_utils import tl, triton", "@triton.jit"),
        ("import triton.language as tl\nimport triton", "@triton.jit"),
        ("import triton.language", "@triton.jit"),
    ],
)
def test_the_decorator_is_found_under_its_imported_name(imported: str, decorator: str) -> None:
    before = f"{imported}\n\n\n{decorator}\n{KERNEL}"
    after = f'{imported}\n\n\n{decorator}(do_not_specialize=["n"])\n{KERNEL}'
    rewrites(rewrite, before, after)


@pytest.mark.parametrize(
    ("imported", "decorator"),
    [
        ("import numba", "@numba.jit"),
        ("from numba import jit", "@jit"),
        ("import jax", "@jax.jit"),
        ("import torch", "@torch.jit.script"),
        ("import triton", "@triton.testing.jit"),
        ("import triton", "@other.triton.jit"),
        ("import triton", "@triton.jit_in_time"),
        ("import triton.language as tl", "@tl.jit"),
        ("from triton.runtime import JITFunction", "@JITFunction"),
    ],
)
def test_a_decorator_that_is_not_tritons_jit_is_left_alone(imported: str, decorator: str) -> None:
    leaves_alone(rewrite, f"{imported}\n\n\n{decorator}\n{KERNEL}")


@pytest.mark.parametrize(
    ("decorator", "constants"),
    [
        ('@triton.jit(do_not_specialize=["n"])', ""),
        ("@triton.jit(do_not_specialize=['n'])", ""),
        ('@triton.jit(do_not_specialize=["x", "n"])', ""),
        ('@triton.jit(do_not_specialize=("n",))', ""),
        ('@triton.jit(do_not_specialize={"n"})', ""),
        ("@triton.jit(do_not_specialize=[0])", ""),
        ("@triton.jit(do_not_specialize=(1, 0x0))", ""),
        ('@triton.jit(debug=True, do_not_specialize=["n"])', ""),
        ('@triton.jit(do_not_specialize=[*["x"], *("n",)])', ""),
        ('@triton.jit(do_not_specialize=["x"] + ["n"])', ""),
        ("@triton.jit(do_not_specialize=FIXED)", 'FIXED = ["x", "n"]\n'),
        ("@triton.jit(do_not_specialize=FIXED)", "FIXED = (0,)\n"),
        ("@triton.jit(do_not_specialize=[*FIXED, 1])", 'FIXED = ["n"]\n'),
        ('@triton.jit(do_not_specialize=FIXED + ["x"])', 'FIXED: list[str] = ["n"]\n'),
    ],
)
def test_a_parameter_that_is_listed_is_left_alone(decorator: str, constants: str) -> None:
    text = decorated(decorator, constants)
    leaves_alone(rewrite, text)
    assert merges(text) == [Merge.PRESENT]


@pytest.mark.parametrize(
    ("decorator", "constants"),
    [
        ("@triton.jit(do_not_specialize=FIXED)", "from acme import FIXED\n"),
        ("@triton.jit(do_not_specialize=fixed())", ""),
        ("@triton.jit(do_not_specialize=acme.FIXED)", "import acme\n"),
        ("@triton.jit(do_not_specialize=[name for name in FIXED])", 'FIXED = ["x"]\n'),
        ('@triton.jit(do_not_specialize=["x", f"{name}"])', ""),
        ('@triton.jit(do_not_specialize="n")', ""),
        ("@triton.jit(do_not_specialize=[-2])", ""),
        ('@triton.jit(do_not_specialize=["x"] if DEBUG else [])', ""),
        ('@triton.jit(do_not_specialize=["x"] * 2)', ""),
        ("@triton.jit(do_not_specialize=FIXED)", "FIXED = FIXED\n"),
        ("@triton.jit(do_not_specialize=A)", "A = B\nB = A\n"),
        ("@triton.jit(do_not_specialize=FIXED)", 'FIXED = ["x"]\nFIXED = ["n"]\n'),
        (
            "@triton.jit(do_not_specialize=FIXED)",
            'if A:\n    FIXED = ["x"]\nelse:\n    FIXED = []\n',
        ),
        ("@triton.jit(**SETTINGS)", 'SETTINGS = {"do_not_specialize": ["n"]}\n'),
        ("@triton.jit(debug=True, **SETTINGS)", "from acme import SETTINGS\n"),
        ("@triton.jit(*ARGUMENTS)", "from acme import ARGUMENTS\n"),
    ],
)
def test_what_the_source_does_not_tell_is_left_alone(decorator: str, constants: str) -> None:
    text = decorated(decorator, constants)
    leaves_alone(rewrite, text)
    assert merges(text) == [Merge.UNKNOWN]


@pytest.mark.parametrize(
    "definition",
    [
        pytest.param("def k(x):\n    pass\n", id="no such parameter"),
        pytest.param("def k(n_max, max_n):\n    pass\n", id="longer names"),
        pytest.param("def k(N):\n    pass\n", id="other case"),
        pytest.param("def k(*n):\n    pass\n", id="all positional arguments"),
        pytest.param("def k(**n):\n    pass\n", id="all keyword arguments"),
        pytest.param("def k(n: tl.constexpr):\n    pass\n", id="constexpr"),
        pytest.param("def k(x, n: tl.constexpr = 1):\n    pass\n", id="constexpr with a default"),
        pytest.param('def k(n: "tl.constexpr"):\n    pass\n', id="constexpr in quotes"),
        pytest.param("def k_2(n):\n    pass\n", id="longer function name"),
        pytest.param("def _k(n):\n    pass\n", id="other function"),
        pytest.param("class k:\n    n: int\n", id="a class"),
        pytest.param('def k(n: "tl.constexpr | int"):\n    pass\n', id="constexpr among others"),
        pytest.param("def outer():\n    def k(n):\n        pass\n", id="no kernel inside"),
    ],
)
def test_a_definition_without_the_parameter_is_left_alone(definition: str) -> None:
    text = f"import triton\nimport triton.language as tl\n\n\n@triton.jit\n{definition}"
    leaves_alone(rewrite, text)
    assert merges(text) == []


def test_a_kernel_that_is_not_decorated_is_left_alone() -> None:
    leaves_alone(rewrite, f"import triton\n\n\n{KERNEL}")
    leaves_alone(rewrite, f"import triton\n\n\n@functools.cache\n{KERNEL}")
    leaves_alone(rewrite, "import triton\n\nk = triton.jit(lambda n: n)\n")


@pytest.mark.parametrize(
    "signature", ["n", "x, n", "n: int", "n: tl.int32", "x, /, n", "x, *, n", "n=1", "n, x, /"]
)
def test_the_parameter_may_stand_anywhere_in_the_signature(signature: str) -> None:
    text = "import triton\nimport triton.language as tl\n\n\n{}\ndef k({}):\n    pass\n"
    rewrites(
        rewrite,
        text.format("@triton.jit", signature),
        text.format('@triton.jit(do_not_specialize=["n"])', signature),
    )


def test_positions_count_through_every_kind_of_parameter() -> None:
    text = (
        "import triton\n\n\n@triton.jit(do_not_specialize=[2])\ndef k(a, /, b, *, n):\n    pass\n"
    )
    leaves_alone(rewrite, text)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        pytest.param(
            """
            class Kernels:
                @staticmethod
                @triton.jit
                def k(n):
                    pass
            """,
            """
            class Kernels:
                @staticmethod
                @triton.jit(do_not_specialize=["n"])
                def k(n):
                    pass
            """,
            id="static method",
        ),
        pytest.param(
            """
            if HAS_TRITON:

                @triton.jit
                def k(n):
                    pass

            else:

                def k(n):
                    raise NotImplementedError
            """,
            """
            if HAS_TRITON:

                @triton.jit(do_not_specialize=["n"])
                def k(n):
                    pass

            else:

                def k(n):
                    raise NotImplementedError
            """,
            id="behind if",
        ),
        pytest.param(
            """
            try:

                @triton.jit
                def k(n):
                    pass

            except RuntimeError:
                k = None
            """,
            """
            try:

                @triton.jit(do_not_specialize=["n"])
                def k(n):
                    pass

            except RuntimeError:
                k = None
            """,
            id="behind try",
        ),
        pytest.param(
            """
            if ON_AMD:

                @triton.jit
                def k(n):
                    pass

            else:

                @triton.jit(do_not_specialize=["x"])
                def k(x, n):
                    pass
            """,
            """
            if ON_AMD:

                @triton.jit(do_not_specialize=["n"])
                def k(n):
                    pass

            else:

                @triton.jit(do_not_specialize=["x", "n"])
                def k(x, n):
                    pass
            """,
            id="two definitions",
        ),
        pytest.param(
            """
            if ON_AMD:

                @triton.jit
                def k(n: tl.constexpr):
                    pass

            else:

                @triton.jit
                def k(n):
                    pass
            """,
            """
            if ON_AMD:

                @triton.jit
                def k(n: tl.constexpr):
                    pass

            else:

                @triton.jit(do_not_specialize=["n"])
                def k(n):
                    pass
            """,
            id="two definitions, one of them by constexpr",
        ),
    ],
)
def test_every_definition_is_rewritten_wherever_it_is(before: str, after: str) -> None:
    head = "import triton\nimport triton.language as tl\n\n"
    separator = "\n" if "class " in before else ""
    rewrites(rewrite, head + separator + _block(before), head + separator + _block(after))


def test_only_the_given_definitions_are_rewritten() -> None:
    text = "import triton\n\n\n" + "\n\n".join([f"@triton.jit\n{KERNEL}"] * 2)
    module = source.parse(text.encode())
    second = [one for one in module.body if isinstance(one, cst.FunctionDef)][1]
    changed = module.visit(AddDoNotSpecialize(module, "k", "n", (second,))).code
    assert changed.count("@triton.jit\n") == 1
    assert changed.index("@triton.jit\n") < changed.index("do_not_specialize")
    assert module.visit(AddDoNotSpecialize(module, "k", "n", ())).code == text


LONG = "a_parameter_of_some_length"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        pytest.param(
            f'@triton.jit(do_not_specialize=["{LONG}", "x"], debug=1)',
            f"""\
@triton.jit(
    do_not_specialize=["{LONG}", "x", "number_of_tokens"], debug=1
)""",
            id="its arguments on a line",
        ),
        pytest.param(
            f'@triton.jit(do_not_specialize=["{LONG}"], do_not_specialize_on_alignment=["x"])',
            f"""\
@triton.jit(
    do_not_specialize=["{LONG}", "number_of_tokens"],
    do_not_specialize_on_alignment=["x"],
)""",
            id="a line for each argument",
        ),
        pytest.param(
            f'@triton.jit(do_not_specialize=["{LONG}", "{"x" * 30}"])',
            f"""\
@triton.jit(
    do_not_specialize=[
        "{LONG}",
        "{"x" * 30}",
        "number_of_tokens",
    ],
)""",
            id="a line for each element",
        ),
    ],
)
def test_a_line_that_grows_too_long_is_broken_as_ruff_would(before: str, after: str) -> None:
    kernel = "def k(number_of_tokens, x):\n    pass\n"

    def long_name(data: bytes) -> bytes:
        module = source.parse(data)
        return module.visit(AddDoNotSpecialize(module, "k", "number_of_tokens")).bytes

    text = "import triton\n\n\n{}\n{}"
    rewrites(long_name, text.format(before, kernel), text.format(after, kernel))


@pytest.mark.parametrize("spare", [0, 1, 2, 3, 4, 5])
def test_an_indented_decorator_is_as_wide_as_its_indent_makes_it(spare: int) -> None:
    keyword = "x" * (88 - len('    @triton.jit(debug=, do_not_specialize=["n"])') + 3 - spare)
    before = f"""\
import triton


class Kernels:
    @staticmethod
    @triton.jit(debug={keyword})
    def k(n):
        pass
"""
    now = rewrite(before.encode()).decode()
    line = next(line for line in now.splitlines() if "do_not_specialize" in line)
    assert len(line) <= 88
    assert ("@triton.jit(\n" in now) == (spare < 3)
    rewrites(rewrite, before, now)


def test_a_wider_tree_keeps_the_line() -> None:
    module = source.parse(
        f'import triton\n@triton.jit(do_not_specialize=["{LONG * 2}"])\n{KERNEL}'.encode()
    )
    wide = module.visit(AddDoNotSpecialize(module, "k", "n", width=200)).code
    assert f'["{LONG * 2}", "n"])\n' in wide


SPREAD = {
    "comment behind a lone argument": (
        """
        @triton.jit(
            debug=True  # why
        )
        """,
        """
        @triton.jit(
            debug=True,  # why
            do_not_specialize=["n"],
        )
        """,
    ),
    "comment behind a last comma": (
        """
        @triton.jit(debug=True,  # why
        )
        """,
        """
        @triton.jit(debug=True,  # why
            do_not_specialize=["n"],
        )
        """,
    ),
    "comment above": (
        """
        @triton.jit(
            # why
            debug=True
        )
        """,
        """
        @triton.jit(
            # why
            debug=True,
            do_not_specialize=["n"],
        )
        """,
    ),
    "one a line without a last comma": (
        """
        @triton.jit(
            debug=True,
            noinline=True
        )
        """,
        """
        @triton.jit(
            debug=True,
            noinline=True,
            do_not_specialize=["n"]
        )
        """,
    ),
    "one a line, aligned": (
        """
        @triton.jit(debug=True,
                    noinline=True)
        """,
        """
        @triton.jit(debug=True,
                    noinline=True,
                    do_not_specialize=["n"])
        """,
    ),
    "comment on the bracket's line": (
        """
        @triton.jit(  # why
            debug=True
        )
        """,
        """
        @triton.jit(  # why
            debug=True, do_not_specialize=["n"]
        )
        """,
    ),
    "comment in a list": (
        """
        @triton.jit(do_not_specialize=[
            "x"  # why
        ])
        """,
        """
        @triton.jit(do_not_specialize=[
            "x",  # why
            "n",
        ])
        """,
    ),
    "a list, aligned": (
        """
        @triton.jit(do_not_specialize=["x",
                                       "y"])
        """,
        """
        @triton.jit(do_not_specialize=["x",
                                       "y",
                                       "n"])
        """,
    ),
    "its one line too long": (
        f"""
        @triton.jit(
            do_not_specialize_on_alignment=["{LONG}", "x"], debug=True
        )
        """,
        f"""
        @triton.jit(
            do_not_specialize_on_alignment=["{LONG}", "x"],
            debug=True,
            do_not_specialize=["n"],
        )
        """,
    ),
    "a list's line too long, beside a comment": (
        f"""
        @triton.jit(
            debug=True,  # why
            do_not_specialize=["{LONG}", "{"x" * 28}"],
        )
        """,
        f"""
        @triton.jit(
            debug=True,  # why
            do_not_specialize=[
                "{LONG}",
                "{"x" * 28}",
                "n",
            ],
        )
        """,
    ),
}


@pytest.mark.parametrize(("before", "after"), SPREAD.values(), ids=SPREAD)
def test_what_is_over_several_lines_goes_on_so(before: str, after: str) -> None:
    before, after = (inspect.cleandoc(one) for one in (before, after))
    rewrites(rewrite, decorated(before), decorated(after))


def test_a_line_that_was_broken_already_is_not_laid_out_again() -> None:
    long = "x" * 100
    rewrites(
        rewrite,
        decorated(f'@triton.jit(\n    do_not_specialize=["{long}"]\n)'),
        decorated(f'@triton.jit(\n    do_not_specialize=["{long}", "n"]\n)'),
    )


@pytest.mark.parametrize(
    "whole",
    [
        pytest.param(b"import triton\r\n\r\n@triton.jit%s\r\ndef k(n):\r\n    pass\r\n", id="CRLF"),
        pytest.param(b"\xef\xbb\xbfimport triton\n@triton.jit%s\ndef k(n):\n    pass\n", id="BOM"),
        pytest.param(
            b"# coding: latin-1\nimport triton\n# \xe9\n@triton.jit%s  # \xe8\ndef k(n): pass\n",
            id="latin-1",
        ),
        pytest.param(b"import triton\n@triton.jit%s\ndef k(n):\n\tif n:\n\t\tpass\n", id="tabs"),
        pytest.param(
            b"import triton\r\n@triton.jit%s\ndef k(n):\r\n    pass\n# end", id="mixed line ends"
        ),
        pytest.param(b"import triton\n@triton.jit%s\ndef k(n): pass", id="no line end at the end"),
        pytest.param(
            b"import triton\n@triton.jit%s\ndef k(n): pass\n\n\n# end\n", id="last comment"
        ),
        pytest.param(b"import triton\n\x0c\n@triton.jit%s\ndef k(n): pass\n", id="form feed"),
        pytest.param(b"import triton\n@triton.jit%s\ndef k(n): pass\\\n\n", id="continued line"),
    ],
)
def test_bytes_outside_the_decorator_are_equal(whole: bytes) -> None:
    rewrites(rewrite, whole % b"", whole % b'(do_not_specialize=["n"])')
