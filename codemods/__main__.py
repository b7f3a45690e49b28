"""The command `vllm-codemods`, also as `python -m codemods`."""

from __future__ import annotations

import gc
import sys


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
        sys.stderr.write("vllm-codemods: interrupted\n")
        return 130


if __name__ == "__main__":
    sys.exit(main())
