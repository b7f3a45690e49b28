"""How long the property tests search: the same cases each time in CI, more of them by hand.

FORKS_PROFILE=search draws new cases, FORKS_SCALE=20 takes twenty times as many.
"""

from __future__ import annotations

import os

from hypothesis import HealthCheck, Phase, settings

SCALE = int(os.environ.get("FORKS_SCALE", "1"))
FRESH = os.environ.get("FORKS_PROFILE") == "search"


def examples(count: int) -> settings:
    return settings(
        max_examples=count * SCALE,
        derandomize=not FRESH,
        database=None,
        deadline=None,
        # Explaining a failure traces every case, which doubles the time.
        phases=(Phase.explicit, Phase.generate, Phase.shrink),
        suppress_health_check=list(HealthCheck),
    )
