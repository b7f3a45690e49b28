"""Triton's own binder: what is reported where it is not as it was."""

from __future__ import annotations

import pytest

from codemods.prove.job import CannotRunError
from codemods.prove.triton_binder import Binder, intercepted


def test_an_interface_of_tritons_that_has_gone_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    jit = pytest.importorskip("triton.runtime.jit")
    monkeypatch.delattr(jit, "create_function_from_signature")
    with pytest.raises(CannotRunError, match="no longer has triton") as e:
        Binder("cuda:90")
    assert "\n" not in str(e.value)


def test_launches_that_cannot_be_intercepted_are_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    jit = pytest.importorskip("triton.runtime.jit")
    monkeypatch.delattr(jit, "JITFunction")
    with pytest.raises(CannotRunError, match="JITFunction"), intercepted(print):
        pass


@pytest.mark.parametrize("target", ["cuda", "cuda:sm_90", "hip:90", "", "metal:1"])
def test_a_target_that_is_none_is_reported(target: str) -> None:
    pytest.importorskip("triton")
    with pytest.raises(CannotRunError, match="no such target"):
        Binder(target)
