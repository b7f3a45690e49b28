"""The class that zeroes KV blocks: what it launches, and whether a call for block 0 reaches it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

import libcst as cst

from codemods.engine.classes import Lineage
from codemods.engine.plan import Reason
from codemods.engine.sources import Refusal, SourceFile, Sources
from codemods.recipes.kv_block_zeroing.facts.names import CLASS, KERNEL, METHOD, UTILS
from codemods.recipes.warm_up.launches import Kernel, Launches, find
from codemods.recipes.warm_up.unlaunched import refuse_kernel_elsewhere, refuse_two_classes
from codemods.recipes.warm_up.warmup_edit import WITHOUT
from codemods.transforms import names
from codemods.transforms.jit import Scope, parameters
from codemods.transforms.statements import line_of


@dataclass(frozen=True)
class Zeroer:
    """The class with its bases, its method that zeroes blocks, and what that launches."""

    owner: Lineage
    file: SourceFile
    method: cst.FunctionDef
    kernels: tuple[Kernel, ...]
    unresolved: tuple[str, ...] = ()

    def refusal(
        self, reason: Reason, detail: str, node: cst.BaseStatement | None = None
    ) -> Refusal:
        line = line_of(self.file.module, node or self.method)
        return Refusal(reason, detail, self.file.name, line)


def read(sources: Sources) -> Zeroer | None:
    """The tree's zeroer, None where it has none or launches no kernel; raises Refusal."""
    file = sources.read(UTILS)
    launches = find(sources, file, CLASS, METHOD) if file is not None else Launches(())
    refuse_two_classes(launches.owner)
    if launches.owner is None or launches.method is None or not launches.kernels:
        _refuse_unlaunched(sources, launches)
        return None
    defining, method = launches.method
    return Zeroer(launches.owner, defining.file, method, launches.kernels, launches.unresolved)


def _refuse_unlaunched(sources: Sources, launches: Launches) -> None:
    """Refuse a launch that leads nowhere, and upstream's kernel where no launch leads to it."""
    if launches.unresolved and launches.method:
        owner, method = launches.method
        raise Refusal(
            Reason.NOT_LAUNCHED,
            f"{CLASS}.{METHOD} launches {launches.unresolved[0]}, which is no Triton kernel that "
            "the tool found in this package",
            owner.file.name,
            line_of(owner.file.module, method),
        )
    refuse_kernel_elsewhere(sources.checkout, UTILS.rpartition("/")[0], KERNEL, f"{CLASS}.{METHOD}")


def check_call(zeroer: Zeroer) -> None:
    """Refuse where `zero_block_ids([0])` cannot be shown to compile what every request launches."""
    ids = _block_ids(zeroer)
    method = zeroer.method
    guards = [one for one in names.statements(method.body) if _is_guard(one)]
    if not guards:
        raise zeroer.refusal(
            Reason.SIGNATURE_CHANGED,
            f"expected {METHOD} to return where the zeroer has no segments (`self._meta is None`), "
            "found nothing of the kind",
        )
    launch = _launch(zeroer)
    if launch is None or len(zeroer.kernels) > 1:
        raise zeroer.refusal(
            Reason.NOT_REACHED,
            f"expected {METHOD} itself to launch one kernel, found "
            f"{', '.join(one.name for one in zeroer.kernels)} behind it; what a call for one "
            "block reaches cannot be read off the source",
        )
    varying = _varying(method, ids)
    for statement in names.walk(method.body):
        if isinstance(statement, cst.If) and statement not in guards:
            code = zeroer.file.module.code_for_node(statement.test)
            asks = _mentions(statement.test, varying) and not _FOR_NONE.fullmatch(code)
            if asks and _decides(statement, launch):
                raise zeroer.refusal(
                    Reason.NOT_REACHED,
                    f"`if {code}` decides on the launch, so that a call for one block need not "
                    "launch what others do",
                    statement,
                )
    for argument in _constants(zeroer.kernels[0], launch):
        if _mentions(argument.value, varying):
            name = argument.keyword.value if argument.keyword else "a constant"
            raise zeroer.refusal(
                Reason.NOT_REACHED,
                f"{name} of the launch depends on the blocks, so that requests compile what a "
                "call for one block does not",
            )


# A test that holds for no block at all.
_FOR_NONE = re.compile(r"not \w+|(?:len\(\w+\)|\w+) (?:== 0|<= 0|< 1)")


def _block_ids(zeroer: Zeroer) -> str:
    """The name of the method's one argument, a list; raises Refusal where it takes another."""
    params = zeroer.method.params
    positional = [*params.posonly_params, *params.params][1:]
    module = zeroer.file.module
    needed = [one for one in (*positional[1:], *params.kwonly_params) if one.default is None]
    if positional and not needed:
        annotation = positional[0].annotation
        code = module.code_for_node(annotation.annotation).lower() if annotation else "list"
        if any(word in code for word in ("list", "sequence", "iterable", "collection")):
            return positional[0].name.value
    raise zeroer.refusal(
        Reason.SIGNATURE_CHANGED,
        f"expected {CLASS}.{METHOD} to take a list of block ids alone, found "
        f"({module.code_for_node(params)}); the warm-up has to be written for this tree; {WITHOUT}",
    )


def _is_guard(statement: cst.BaseStatement) -> bool:
    """`if … or self._meta is None: return`; the attribute may have another name."""
    return (
        isinstance(statement, cst.If)
        and any(
            isinstance(node, cst.Comparison)
            and (names.dotted(node.left) or "").startswith("self.")
            and isinstance(node.comparisons[0].operator, cst.Is)
            for node in names.descend(statement.test)
        )
        and any(isinstance(node, cst.Return) for node in names.descend(statement.body))
    )


def _launch(zeroer: Zeroer) -> cst.Call | None:
    for call in names.calls(zeroer.method.body):
        if isinstance(call.func, cst.Subscript):
            path = names.dotted(call.func.value) or ""
            if path.rpartition(".")[2] == zeroer.kernels[0].name:
                return call
    return None


def _varying(method: cst.FunctionDef, ids: str) -> frozenset[str]:
    """The local names that depend on which blocks are asked for, or on how many."""
    found = {ids}
    assigned = [
        (name, node.value)
        for node in names.descend(method.body)
        if isinstance(node, (cst.Assign, cst.AnnAssign, cst.AugAssign, cst.NamedExpr))
        if node.value is not None
        for name in _targets(node)
    ]
    while True:
        more = {name for name, value in assigned if _mentions(value, frozenset(found))}
        if more <= found:
            return frozenset(found)
        found |= more


def _targets(node: cst.CSTNode) -> Iterator[str]:
    """The plain names that an assignment binds."""
    targets: list[cst.CSTNode] = []
    if isinstance(node, cst.Assign):
        targets = [one.target for one in node.targets]
    elif isinstance(node, _ONE_TARGET):
        targets = [node.target]
    for target in targets:
        parts = target.elements if isinstance(target, cst.Tuple) else [target]
        for part in parts:
            name = part.value if isinstance(part, cst.Element) else part
            if isinstance(name, cst.Name):
                yield name.value


_ONE_TARGET = (cst.AnnAssign, cst.AugAssign, cst.NamedExpr)


def _mentions(node: cst.CSTNode, wanted: frozenset[str]) -> bool:
    return any(isinstance(one, cst.Name) and one.value in wanted for one in names.descend(node))


def _decides(statement: cst.If, launch: cst.Call) -> bool:
    """Whether a branch leaves the method, or makes the launch."""
    return any(isinstance(node, cst.Return) or node is launch for node in names.descend(statement))


def _constants(kernel: Kernel, launch: cst.Call) -> Iterator[cst.Arg]:
    """The launch's arguments of which each value is a kernel of its own."""
    declared = list(parameters(kernel.definitions[0]))
    scope = Scope.of(kernel.file.module)
    at_run_time = {one.name.value for one in declared if not scope.is_constexpr(one)}
    for index, argument in enumerate(launch.args):
        by_place = declared[index].name.value if index < len(declared) else ""
        name = argument.keyword.value if argument.keyword else by_place
        if name not in at_run_time:
            yield argument
