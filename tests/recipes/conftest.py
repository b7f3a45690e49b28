"""What the recipes' tests share: most plan one tree again and again, with one file changed."""

from tests.forks.conftest import parsed_once

__all__ = ["parsed_once"]
