"""`python -m codemods` is the command `vllm-codemods`."""

import sys

from codemods.cli import main

if __name__ == "__main__":
    sys.exit(main())
