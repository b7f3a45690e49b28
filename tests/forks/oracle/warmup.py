"""Rule: the warm-up module gains one function, which borrows rows and gives them back."""

from __future__ import annotations

import ast
import builtins
from functools import lru_cache

from tests.forks.oracle.modules import Module, Origin, Package, methods

WARMUP = "v1/worker/gpu/warmup.py"
BLOCK_TABLE = "v1/worker/block_table.py"
NAME = "warmup_v1_slot_mapping_kernel"
USED = ("add_row", "clear_row", "commit_block_table", "compute_slot_mapping")


def faults(old: Package, new: Package) -> list[str]:
    before, after = old.modules.get(WARMUP), new.modules.get(WARMUP)
    if before is None or after is None:
        return ["no warm-up module"]
    named = [n for n in after.outside if getattr(n, "name", None) == NAME]
    if len(named) != 1 or NAME not in after.functions:
        return [f"{len(named)} definitions of {NAME}"]
    if NAME in before.functions:
        # The fork's own: it must only be left as it is.
        return [] if _rest(before, before) == _rest(after, after) else ["the warm-up changed"]
    function = after.functions[NAME]
    found = list(_own_faults(ast.unparse(function)))
    read = _free(function, after.imports.get("annotations"))
    found += [f"{name} is not bound" for name in sorted(read) if not after.bound(name)]
    found += _binding_faults(function, new)
    if _rest(before, after) != _rest(after, before):
        found.append("the warm-up module changed by more than the function")
    return found


@lru_cache(maxsize=64)
def _own_faults(source: str) -> tuple[str, ...]:
    function = ast.parse(source).body[0]
    assert isinstance(function, ast.FunctionDef)
    found = []
    if [ast.unparse(d) for d in function.decorator_list] != ["torch.inference_mode()"]:
        found.append("not decorated with torch.inference_mode()")
    if ast.unparse(function).count("(model_runner: Any) -> None:") != 1:
        found.append("another signature")
    tries = [n for n in ast.walk(function) if isinstance(n, ast.Try)]
    if len(tries) != 1 or tries[0].handlers:
        return (*found, "not one try with a finally alone")
    last = _called(tries[0].finalbody)
    if last.count("clear_row") < 1 or "commit_block_table" not in last:
        found.append("finally does not clear and commit the rows")
    elif last.index("clear_row") > len(last) - 1 - last[::-1].index("commit_block_table"):
        found.append("the rows are committed before they are cleared")
    if "compute_slot_mapping" not in _called(tries[0].body):
        found.append("the mapping is not computed under the finally")
    text = source.split("try:")[0]
    if "num_blocks_per_row" not in text or "return" not in text:
        found.append("rows in use are not looked for first")
    if "torch.int32" not in source or "torch.int64" not in source:
        found.append("the dtypes are not those of a request")
    if "input_batch.block_table" not in source:
        found.append("not the runner's own tables")
    return tuple(found)


def _called(body: list[ast.stmt]) -> list[str]:
    nodes = [n for statement in body for n in ast.walk(statement) if isinstance(n, ast.Call)]
    nodes.sort(key=lambda node: (node.lineno, node.col_offset))
    return [n.func.attr for n in nodes if isinstance(n.func, ast.Attribute)]


def _free(function: ast.FunctionDef, lazy: Origin | None) -> set[str]:
    """Names that the function reads and does not bind; annotations count unless they are lazy."""
    bound = {arg.arg for arg in function.args.args}
    annotations = [arg.annotation for arg in function.args.args] if lazy else []
    skipped = {id(part) for node in annotations if node for part in ast.walk(node)}
    read = set()
    for node in ast.walk(function):
        if isinstance(node, ast.Name) and id(node) not in skipped:
            (read if isinstance(node.ctx, ast.Load) else bound).add(node.id)
    return {name for name in read - bound if not hasattr(builtins, name)}


def _binding_faults(function: ast.FunctionDef, package: Package) -> list[str]:
    """Calls that the tables' methods would not take."""
    module = package.modules.get(BLOCK_TABLE)
    lineage = package.lineage(module, "MultiGroupBlockTable") if module else []
    if not lineage:
        return ["no MultiGroupBlockTable"]
    known = {k: v for _, owner in reversed(lineage) for k, v in methods(owner).items()}
    found = []
    for node in ast.walk(function):
        if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)):
            continue
        name = node.func.attr
        if name in USED and not _takes(known.get(name), node):
            found.append(f"MultiGroupBlockTable.{name} does not take this call")
    return found


def _takes(method: ast.FunctionDef | None, call: ast.Call) -> bool:
    if method is None or method.args.posonlyargs:
        return False
    args = method.args
    names = [arg.arg for arg in args.args][1:]
    optional = names[len(names) - len(args.defaults) :] if args.defaults else []
    given = set(names[: len(call.args)]) | {k.arg for k in call.keywords if k.arg}
    if len(call.args) > len(names) and not args.vararg:
        return False
    extra = {k.arg for k in call.keywords if k.arg not in names}
    if extra and not args.kwarg:
        return False
    only = [a.arg for a, d in zip(args.kwonlyargs, args.kw_defaults, strict=True) if d is None]
    return set(names) - given <= set(optional) and set(only) <= given


def _rest(module: Module, other: Module) -> str:
    """The module without the function and without imports that only it has."""
    theirs = {(o.module, o.name, bound) for bound, o in other.imports.items()}
    tree = ast.parse(ast.unparse(module.tree))
    body: list[ast.stmt] = []
    for node in tree.body:
        if isinstance(node, ast.FunctionDef) and node.name == NAME and module is not other:
            continue
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            origins = module.imported([node])
            node.names = [
                alias
                for alias in node.names
                if (bound := alias.asname or alias.name.split(".")[0]) not in origins
                or (origins[bound].module, origins[bound].name, bound) in theirs
            ]
            if not node.names:
                continue
        body.append(node)
    return "\n".join(ast.dump(node) for node in body)
