"""The smallest kernel there is: where it does not compile for a target, no kernel would.

Imported only inside a worker, since it needs Triton.
"""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit  # type: ignore[untyped-decorator, unused-ignore]
def probe(pointer):  # type: ignore[no-untyped-def]
    tl.store(pointer, 1)
