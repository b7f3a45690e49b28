"""How much the tests search: a quarter, the same cases each time, or with search the whole.

FORKS_PROFILE=search takes the whole and draws new cases, FORKS_SCALE=30 thirty times as many.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TypeVar

from hypothesis import HealthCheck, Phase, settings

SCALE = int(os.environ.get("FORKS_SCALE", "1"))
FRESH = os.environ.get("FORKS_PROFILE") == "search"
QUARTER = 4
Case = TypeVar("Case")


def part_of(cases: Sequence[Case], offset: int = 0) -> Sequence[Case]:
    """Every fourth of the cases, from `offset` on; in a search all of them."""
    return cases if FRESH else cases[offset % QUARTER :: QUARTER]


def examples(count: int) -> settings:
    return settings(
        max_examples=count * SCALE if FRESH else count // QUARTER,
        derandomize=not FRESH,
        database=None,
        deadline=None,
        # Explaining a failure traces every case, which doubles the time.
        phases=(Phase.explicit, Phase.generate, Phase.shrink),
        suppress_health_check=list(HealthCheck),
    )
