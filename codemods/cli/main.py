"""The command line: runs a verb and turns every end into an exit code."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from codemods.cli import streams, verbs
from codemods.cli.exits import INTERRUPTED, USAGE, Stop
from codemods.cli.options import parser
from codemods.engine.checkout import UsageError


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; the exit code is returned, also for wrong usage."""
    streams.prepare()
    code = _run(sys.argv[1:] if argv is None else argv)
    try:
        sys.stdout.flush()
    except BrokenPipeError:  # the reader has had enough
        streams.drop_stdout()
    except OSError as error:
        streams.log(f"standard output: {error.strerror or error}")
        streams.drop_stdout()
        return USAGE
    return code


def _run(argv: Sequence[str]) -> int:
    try:
        options = parser(verbs.VERBS, argv).parse_args(argv)
        return int(options.run(options))
    except SystemExit as error:
        return error.code if isinstance(error.code, int) else USAGE
    except Stop as stop:
        streams.log(*stop.lines)
        return stop.code
    except UsageError as error:
        streams.log(str(error))
        return USAGE
    except KeyboardInterrupt:
        return _interrupted()
    except OSError as error:
        streams.log(f"{error.filename or 'the system'}: {error.strerror or error}")
        streams.drop_stdout()
        return USAGE
    except BaseException as error:  # Python's own exit code for it means "would change"
        if isinstance(error.__cause__, KeyboardInterrupt):  # Python 3.11 hides it in class bodies
            return _interrupted()
        streams.log(unexpected(error))
        return USAGE


def _interrupted() -> int:
    streams.log("interrupted; the tree is as it was")
    return INTERRUPTED


def unexpected(error: BaseException) -> str:
    """One line for an error that nothing foresaw, such as the end of memory or of threads."""
    what = " ".join(str(error).split())[:300]
    return f"{type(error).__name__}{_place(error)}{f': {what}' if what else ''}"


def _place(error: BaseException) -> str:
    """Where it was raised; nothing is imported for it, since there may be no memory left."""
    last = error.__traceback__
    if last is None:
        return ""
    while last.tb_next is not None:
        last = last.tb_next
    return f" at {Path(last.tb_frame.f_code.co_filename).name}:{last.tb_lineno}"
