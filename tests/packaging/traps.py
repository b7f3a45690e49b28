"""Modules that a hostile tree plants: each says that it was imported by writing a marker."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

from consumers import run

# What Python imports by itself, what pip, venv and the tool import, and the tool.
NAMES = (
    "sitecustomize",
    "usercustomize",
    "pip",
    "venv",
    "ensurepip",
    "secrets",
    "json",
    "argparse",
    "hatchling",
    "libcst",
    "codemods",
)


@dataclass(frozen=True)
class Traps:
    """Traps in `folder`; `marker` holds the names of those that were imported."""

    folder: Path
    marker: Path

    def set(self) -> None:
        for name in NAMES:
            code = (
                f"with open({str(self.marker)!r}, 'a') as file: file.write({name!r} + '\\n')\n"
                f"raise SystemExit(0)\n"
            )
            (self.folder / f"{name}.py").write_text(code)
            (self.folder / name).mkdir()
            for module in ("__init__", "__main__"):
                (self.folder / name / f"{module}.py").write_text(code)

    def assert_they_work(self) -> None:
        """Python that is not isolated falls for them, in the folder and by PYTHONPATH."""
        for command, cwd, path in (
            ("-m pip", self.folder, ""),
            ("-c pass", self.folder.parent, str(self.folder)),
        ):
            run(f"{sys.executable} {command}", cwd, PYTHONPATH=path)
            assert self.marker.exists()
            self.marker.unlink()

    def assert_untouched(self) -> None:
        assert not self.marker.exists(), self.marker.read_text()
