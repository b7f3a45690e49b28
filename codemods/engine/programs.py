"""Finds programs of the machine, never one that lies in the current folder."""

from __future__ import annotations

import os
import shutil


def safe_path() -> str:
    """PATH without what depends on the current folder: a tree must not bring the program."""
    return os.pathsep.join(
        folder for folder in os.get_exec_path() if os.path.isabs(os.fsdecode(folder))
    )


def find_program(name: str) -> str | None:
    """The whole path of a program, None where there is none."""
    return shutil.which(name, path=safe_path() or os.devnull)
