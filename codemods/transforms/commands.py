"""`AddDoNotSpecialize` as a command of LibCST's own tool, for use on any file.

    python -m libcst.tool codemod -x --no-format \\
        codemods.transforms.commands.AddDoNotSpecialize --kernel NAME --param NAME FILE

`--no-format` keeps the tool from running black. Without `-x`, `codemods.transforms` has to be
among the `modules` of a `.libcst.codemod.yaml`; a command is then `commands.AddDoNotSpecialize`.
Nothing else imports this module: `libcst.codemod` takes longer to import than a tree to rewrite.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import libcst as cst
from libcst.codemod import CodemodCommand, CodemodContext, SkipFile

from codemods.transforms import do_not_specialize, names


class AddDoNotSpecialize(CodemodCommand):
    """Lists a parameter of a Triton kernel in `do_not_specialize` of its jit decorator."""

    DESCRIPTION = "List a parameter of a Triton kernel in do_not_specialize."

    @staticmethod
    def add_args(arg_parser: argparse.ArgumentParser) -> None:
        arg_parser.add_argument("--kernel", required=True, help="the kernel's name")
        arg_parser.add_argument("--param", required=True, help="the parameter's name")

    def __init__(self, context: CodemodContext, kernel: str, param: str) -> None:
        super().__init__(context)
        self.kernel = kernel
        self.param = param

    def transform_module_impl(self, tree: cst.Module) -> cst.Module:
        self._skip_what_libcst_loses(tree)
        transformer = do_not_specialize.AddDoNotSpecialize(tree, self.kernel, self.param)
        changed = tree.visit(transformer)
        if not transformer.merges:
            raise SkipFile(next(iter(transformer.left), self._undefined(tree)))
        for why in transformer.left:
            self.warn(why)
        if do_not_specialize.Merge.UNKNOWN in transformer.merges:
            self.warn(f"what {self.kernel} has in do_not_specialize cannot be read off the source")
        return changed

    def _skip_what_libcst_loses(self, tree: cst.Module) -> None:
        """Skip a file of which LibCST would not write back every byte outside the edit."""
        name = self.context.filename
        if name is None:
            return
        data = Path(name).read_bytes()  # as LibCST's tool has just done
        if tree.bytes != data:
            raise SkipFile(
                "LibCST would change white space outside the edit: a form feed before code, white "
                "space at the end or a lone carriage return"
            )

    def _undefined(self, tree: cst.Module) -> str:
        if any(name == self.kernel for name, _ in names.assignments(tree)):
            return f"{self.kernel} is assigned and not defined with a decorator"
        return f"there is no function {self.kernel}"
