"""The transformers as commands of LibCST's own tool, for use on any file.

    python -m libcst.tool codemod -x --no-format \\
        codemods.transforms.commands.AddDoNotSpecialize --kernel NAME --param NAME FILE

`--no-format` keeps the tool from running black. Without `-x`, `codemods.transforms` has to be
among the `modules` of a `.libcst.codemod.yaml`; a command is then `commands.AddDoNotSpecialize`.
Nothing else imports this module: `libcst.codemod` takes longer to import than a tree to rewrite.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from pathlib import Path

import libcst as cst
from libcst.codemod import CodemodCommand, CodemodContext, SkipFile

from codemods.transforms import do_not_specialize, extend_import, names, statements


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
        transformer = do_not_specialize.AddDoNotSpecialize(tree, self.kernel, self.param)
        changed = tree.visit(transformer)
        if not transformer.merges:
            raise SkipFile(f"no Triton kernel {self.kernel} with a parameter {self.param}")
        if do_not_specialize.Merge.UNKNOWN in transformer.merges:
            self.warn(f"what {self.kernel} has in do_not_specialize cannot be read off the source")
        return changed


class ExtendImport(CodemodCommand):
    """Adds a name to the file's imports from a module."""

    DESCRIPTION = "Add a name to an existing `from MODULE import …`."

    @staticmethod
    def add_args(arg_parser: argparse.ArgumentParser) -> None:
        arg_parser.add_argument("--module", required=True, help="as written, leading dots too")
        arg_parser.add_argument("--name", required=True, help="the name to import")

    def __init__(self, context: CodemodContext, module: str, name: str) -> None:
        super().__init__(context)
        self.imported = module
        self.name = name

    def transform_module_impl(self, tree: cst.Module) -> cst.Module:
        if not any(one.module == self.imported and one.name for one in names.imports(tree)):
            raise SkipFile(f"no `from {self.imported} import …` that takes a name more")
        return tree.visit(extend_import.ExtendImport(self.imported, self.name))


class AppendStatements(CodemodCommand):
    """Puts statements at the end of the file, unless they are in it already."""

    DESCRIPTION = "Put statements at the end of a file."

    @staticmethod
    def add_args(arg_parser: argparse.ArgumentParser) -> None:
        _add_source(arg_parser)

    def __init__(self, context: CodemodContext, source: str) -> None:
        super().__init__(context)
        self.source = source

    def transform_module_impl(self, tree: cst.Module) -> cst.Module:
        new = statements.parse_statements(tree, self.source)
        return tree if _holds(tree, tree.body, new) else statements.append(tree, self.source)


class InsertAfterCall(CodemodCommand):
    """Puts statements behind the last statement of a function that calls something."""

    DESCRIPTION = "Put statements behind the last call of CALL in a function."

    @staticmethod
    def add_args(arg_parser: argparse.ArgumentParser) -> None:
        arg_parser.add_argument("--function", required=True, help="a function's or method's name")
        arg_parser.add_argument("--call", required=True, help="what is called, dots and all")
        _add_source(arg_parser)

    def __init__(self, context: CodemodContext, function: str, call: str, source: str) -> None:
        super().__init__(context)
        self.function = function
        self.call = call
        self.source = source

    def transform_module_impl(self, tree: cst.Module) -> cst.Module:
        owners: list[cst.BaseSuite | cst.Module] = [tree]
        owners += (owner.body for owner in names.classes(tree))
        found = [one for owner in owners for one in names.functions(owner, self.function)]
        calling = [
            statement
            for function in found
            for statement in names.walk(function.body)
            if isinstance(statement, cst.SimpleStatementLine)
            and any(names.dotted(call.func) == self.call for call in names.calls(statement))
        ]
        if not calling:
            raise SkipFile(f"no function {self.function} that calls {self.call}")
        new = statements.parse_statements(tree, self.source)
        if any(_holds(tree, names.walk(function.body), new) for function in found):
            return tree
        return statements.insert_after(tree, calling[-1], new)


def _add_source(arg_parser: argparse.ArgumentParser) -> None:
    arg_parser.add_argument(
        "--source",
        required=True,
        type=_text,
        help="statements, or a file that holds them; four-space indents",
    )


def _text(source: str) -> str:
    """The file's text where `source` names one, else `source` itself; it ends with a line end."""
    named = "\n" not in source and Path(source).is_file()
    text = (Path(source).read_text("utf-8") if named else source).rstrip("\n") + "\n"
    try:
        parsed = cst.parse_module(text)
    except cst.ParserSyntaxError as error:
        raise argparse.ArgumentTypeError(f"syntax error on line {error.raw_line}") from None
    if not parsed.body:
        raise argparse.ArgumentTypeError("no statements")
    return text


def _holds(
    module: cst.Module, body: Iterable[cst.BaseStatement], new: Iterable[cst.BaseStatement]
) -> bool:
    there = {module.code_for_node(one).strip() for one in body}
    return all(module.code_for_node(one).strip() in there for one in new)
