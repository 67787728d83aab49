"""Sealing: what comes back is what was given, and nothing that was changed on the way comes back at all."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.ir import AFTER_TEXT, ON_TEXT, ON_THOUGHT, SealedSignature, Signature, seal, unseal

SIGNED = Signature("CsQBAb4+9v/abc==", "gemini-g3")
TARGETS = st.sampled_from([ON_TEXT, AFTER_TEXT, ON_THOUGHT, "toolu_0123456789abcdef-call_1"])


@given(data=st.text(st.characters(exclude_categories=["Cs"])), target=TARGETS)
def test_a_sealed_signature_comes_back_untouched(data: str, target: str) -> None:
    sealed = SealedSignature(Signature(data, "vertex-g4"), target)
    assert unseal(sealed.seal()) == sealed


def test_a4_every_changed_character_is_noticed() -> None:
    word = seal(SIGNED, "toolu_1")
    for place in range(len(word)):
        for changed in (word[:place] + "~" + word[place + 1 :], word[:place] + word[place + 1 :]):
            assert unseal(changed) is None, changed


@pytest.mark.parametrize(
    "word",
    [
        "",
        "claude#EqQBCkgIARABGAIiQL",
        "EqQBCkgIARABGAIiQL",
        "dgm1",
        "dgm1.a.b.c",
        "dgm1.a.b.c.d",
        "dgm2.a.b.c.d",
    ],
)
def test_a9_a_word_of_another_vendor_is_not_ours(word: str) -> None:
    assert unseal(word) is None


def test_a4_a_signature_cut_short_is_noticed() -> None:
    word = seal(SIGNED, ON_TEXT)
    assert all(unseal(word[:length]) is None for length in range(len(word)))


def test_the_same_signature_for_another_part_is_another_word() -> None:
    assert seal(SIGNED, ON_TEXT) != seal(SIGNED, AFTER_TEXT)
    assert seal(SIGNED, ON_TEXT).isascii()
