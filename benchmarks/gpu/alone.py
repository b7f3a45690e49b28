"""Run a command in a network of its own, so that suites with fixed ports can run side by side.

    python alone.py COMMAND [ARGUMENT ...]

Needs root and Python 3.12, which brought `os.unshare`; elsewhere the command runs as it is.
"""

from __future__ import annotations

import fcntl
import os
import socket
import struct
import sys

_SIOCSIFFLAGS, _IFF_UP = 0x8914, 1  # linux/sockios.h, linux/if.h


def leave_the_network() -> None:
    """Enter a new network namespace and bring its loopback up."""
    os.unshare(os.CLONE_NEWNET)  # type: ignore[attr-defined,unused-ignore]
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        fcntl.ioctl(any_socket, _SIOCSIFFLAGS, struct.pack("16sh", b"lo", _IFF_UP))


if __name__ == "__main__":
    if hasattr(os, "unshare") and os.geteuid() == 0:
        leave_the_network()
    os.execvp(sys.argv[1], sys.argv[1:])
