"""mypy on the changed files, before and after; the tree on the disk stays as it is.

mypy runs in a temporary folder, under settings that are copied from the tree's by name: those that
say what is an error. So no plugin, no Python and no report file that the tree names is used, and
nothing is installed.
"""

from __future__ import annotations

import configparser
import importlib
import importlib.util
import re
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from codemods.engine.checkout import Checkout, UnreadableFile
from codemods.engine.plan import Plan
from codemods.prove import processes
from codemods.prove.proof import Options, Proof, failed, passed, skipped
from codemods.prove.ruff import UnavailableError, first_line
from codemods.prove.subject import Subject

NAME = "mypy"
# https://mypy.readthedocs.io/en/stable/config_file.html: none names a program or a file.
_TAKEN = frozenset(
    {
        "allow_redefinition", "allow_untyped_globals", "always_false", "always_true",
        "check_untyped_defs", "disable_error_code", "disallow_any_decorated",
        "disallow_any_explicit", "disallow_any_expr", "disallow_any_generics",
        "disallow_any_unimported", "disallow_incomplete_defs", "disallow_subclassing_any",
        "disallow_untyped_calls", "disallow_untyped_decorators", "disallow_untyped_defs",
        "enable_error_code", "extra_checks", "follow_imports", "follow_imports_for_stubs",
        "force_union_syntax", "ignore_errors", "ignore_missing_imports", "implicit_optional",
        "implicit_reexport", "local_partial_types", "no_implicit_optional",
        "no_implicit_reexport", "platform", "python_version", "strict", "strict_equality",
        "strict_optional", "warn_no_return", "warn_redundant_casts", "warn_return_any",
        "warn_unreachable", "warn_unused_ignores",
    }
)  # fmt: skip


def prove(subject: Subject, options: Options) -> Proof:
    """The row."""
    plan = subject.plan
    if importlib.util.find_spec("mypy") is None:
        return skipped(NAME, "mypy is not installed: pip install mypy")
    if plan.tree.ref is not None:
        return skipped(NAME, "mypy reads files from the disk: name a checkout in place of --ref")
    if not plan.changes:
        return passed(NAME, "no file changes, so there is nothing to compare", files=0)
    try:
        with tempfile.TemporaryDirectory(prefix="vllm-codemods-") as scratch:
            before, after = _both(plan, subject.checkout, Path(scratch), options.timeout)
    except UnavailableError as reason:
        return skipped(NAME, str(reason))
    figures = {
        "files": len(plan.changes),
        "errors_before": before.total(),
        "errors_after": after.total(),
    }
    new = sorted((after - before).elements())
    if new:
        return failed(NAME, f"{len(new)} new: {'; '.join(new[:3])}", **figures)
    return passed(NAME, "no new error under the tree's own settings", **figures)


def _both(
    plan: Plan, checkout: Checkout, folder: Path, timeout: float
) -> tuple[Counter[str], Counter[str]]:
    """Errors of the changed files before and after."""
    root = checkout.root.resolve()
    (folder / "mypy.ini").write_text(_settings(checkout), encoding="utf-8")
    names = {str(root / change.path): change.path for change in plan.changes}
    shadows: list[str] = []
    for index, change in enumerate(plan.changes):
        shadow = folder / f"{index}.py"
        shadow.write_bytes(change.after)
        shadows += ["--shadow-file", str(root / change.path), str(shadow)]
    return _errors(names, [], folder, timeout), _errors(names, shadows, folder, timeout)


def _errors(
    names: Mapping[str, str], shadows: list[str], folder: Path, timeout: float
) -> Counter[str]:
    """Errors in the changed files, without their lines. Raises UnavailableError."""
    ended = processes.run(
        [
            *(sys.executable, "-I", "-B", "-m", "mypy", "--no-error-summary", "--no-pretty"),
            *("--hide-error-context", "--config-file", str(folder / "mypy.ini")),
            *("--cache-dir", str(folder / "cache"), *shadows, *names),
        ],
        folder=folder,
        environment={"HOME": str(folder), "LC_ALL": "C.UTF-8", "TMPDIR": str(folder)},
        timeout=timeout,
    )
    if ended.status is None:
        raise UnavailableError(f"mypy did not end within {timeout:g} s")
    if ended.status not in (0, 1):
        raise UnavailableError(
            f"mypy cannot check the tree: {first_line(ended.output + ended.complaints)}"
        )
    lines = ended.output.decode("utf-8", "replace").splitlines()
    return Counter(found for line in lines if (found := _error(line, names)) is not None)


def _error(line: str, names: Mapping[str, str]) -> str | None:
    match = re.match(r"(?P<path>.+?):\d+(?::\d+)?: error: (?P<message>.*)", line)
    if match is None or match["path"] not in names:
        return None
    return f"{names[match['path']]}: {match['message']}"


def _settings(checkout: Checkout) -> str:
    """The tree's settings that are taken, as an ini file. Raises UnavailableError."""
    lines = ["[mypy]"]
    for section, settings in _sections(checkout):
        lines += [f"[{section}]"] if section != "mypy" else []
        lines += [f"{name} = {_value(value)}" for name, value in settings.items() if name in _TAKEN]
    return "\n".join(lines) + "\n"


def _value(value: Any) -> str:
    text = ", ".join(map(str, value)) if isinstance(value, list) else str(value)
    return " ".join(text.split())


def _sections(checkout: Checkout) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """The sections of the first file that has any, the general one first."""
    for name in ("mypy.ini", ".mypy.ini", "pyproject.toml", "setup.cfg"):
        try:
            data = (checkout.files.read(name) or b"").decode("utf-8")
            found = _of_toml(data) if name == "pyproject.toml" else _of_ini(data)
        except (UnreadableFile, ValueError, configparser.Error) as error:
            why = " ".join(str(error).split())
            raise UnavailableError(f"mypy's settings cannot be read: {name}: {why}") from None
        if found:
            yield from sorted(found, key=lambda section: section[0] != "mypy")
            return


def _of_ini(text: str) -> list[tuple[str, Mapping[str, Any]]]:
    parser = configparser.RawConfigParser()
    parser.read_string(text)
    return [
        (section, dict(parser[section]))
        for section in parser.sections()
        if re.fullmatch(r"mypy(-[\w.*, -]+)?", section)
    ]


def _of_toml(text: str) -> list[tuple[str, Mapping[str, Any]]]:
    if "tool.mypy" not in text:
        return []
    try:
        toml = importlib.import_module("tomllib" if sys.version_info >= (3, 11) else "tomli")
    except ImportError:
        raise UnavailableError("tomli is not installed: pip install tomli") from None
    own = toml.loads(text).get("tool", {}).get("mypy", {})
    found = [("mypy", own)]
    for override in own.get("overrides", []):
        modules = override.get("module", [])
        for module in [modules] if isinstance(modules, str) else modules:
            if re.fullmatch(r"[\w.*]+", str(module)):
                found.append((f"mypy-{module}", override))
    return found
