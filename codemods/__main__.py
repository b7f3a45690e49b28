"""The command `vllm-codemods`, also as `python -m codemods`."""

from __future__ import annotations

import gc
import os
import sys  # nothing more: these are loaded before the current folder is off the import path


def main() -> int:
    """Run the command with the process's arguments."""
    try:
        # Importing LibCST makes much that stays: the collector need not look at it, now or later.
        gc.disable()
        from codemods.cli.main import main as run

        gc.freeze()
        gc.enable()
        return run()
    except KeyboardInterrupt:  # before the command itself had begun, or after its end
        return _ended("interrupted", 130)
    except Exception as error:  # no memory for the imports, or a broken installation
        if isinstance(error.__cause__, KeyboardInterrupt):  # Python 3.11 hides it in class bodies
            return _ended("interrupted", 130)
        return _ended(f"cannot start: {type(error).__name__}: {error}", 2)


def _ended(line: str, code: int) -> int:
    try:
        sys.stderr.write(f"vllm-codemods: {line}\n")
    except (OSError, AttributeError):  # a stderr that is full or closed
        return code
    return code


def leave_current_folder_out(path: list[str], here: str, own: str) -> None:
    """Take the current folder, which `python -m` puts first, off the import path.

    It may be the tree, and the tree may hold a libcst.py.
    """
    if path and path[0] in ("", here) and here != own:
        del path[0]


if __name__ == "__main__":
    if not getattr(sys.flags, "safe_path", False):
        own = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
        leave_current_folder_out(sys.path, os.getcwd(), own)
    sys.exit(main())
