"""Patches are aimed at the tree, and the nearest is the one with the fewest other lines."""

from __future__ import annotations

from pathlib import Path

import pytest
from peers.subjects import FILES, Patch, Subject, nearest

PATCH = b"""\
Subject: about a/vllm/x.py

diff --git a/vllm/x.py b/vllm/x.py
--- a/vllm/x.py
+++ b/vllm/x.py
@@ -1,2 +1,2 @@
 # a/vllm/x.py
-from vllm import a
+from vllm import b
"""


def subject(folder: Path, name: str, package: str = "vllm", lines: str = "") -> Subject:
    for file in FILES:
        path = folder / name / package / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(lines, "utf-8")
    return Subject(name, "release", folder / name, package, True, True)


def test_only_the_headers_of_a_patch_are_aimed(tmp_path: Path) -> None:
    patch = Patch(subject(tmp_path, "1"), PATCH)
    aimed = patch.aimed_at(subject(tmp_path, "2", "src/acme"))
    assert aimed.count(b"src/acme/x.py") == 4
    assert b"Subject: about a/vllm/x.py\n" in aimed
    assert aimed[aimed.index(b"@@") :] == PATCH[PATCH.index(b"@@") :]


def test_a_patch_aimed_at_the_same_package_stays_as_it_is(tmp_path: Path) -> None:
    patch = Patch(subject(tmp_path, "1"), PATCH)
    assert patch.aimed_at(subject(tmp_path, "2")) == PATCH


def test_the_nearest_patch_is_of_the_tree_with_the_fewest_other_lines(tmp_path: Path) -> None:
    texts = {"far": "a\nx\ny\n", "near": "a\nb\nx\n", "same": "a\nb\nc\n"}
    subjects = {name: subject(tmp_path, name, lines=text) for name, text in texts.items()}
    made = {name: Patch(one, PATCH) for name, one in subjects.items()}
    assert nearest(made, subjects["same"]).made_for.name == "near"


@pytest.mark.parametrize("name", ["far", "same"])
def test_a_tree_is_never_given_its_own_patch(tmp_path: Path, name: str) -> None:
    texts = {"far": "a\n", "same": "b\n"}
    subjects = {key: subject(tmp_path, key, lines=text) for key, text in texts.items()}
    made = {key: Patch(one, PATCH) for key, one in subjects.items()}
    assert nearest(made, subjects[name]).made_for.name != name
