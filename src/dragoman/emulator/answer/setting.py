"""All that an answer depends on besides the reply."""

from __future__ import annotations

import msgspec

from dragoman.emulator.backend import Backend
from dragoman.emulator.models import Model
from dragoman.emulator.signature import Signer

#: Gemini 4 answers in hops of at most so many tokens, half of that when nothing is streamed.
STREAMED_HOP_TOKENS = 65_536
WHOLE_HOP_TOKENS = 32_768


class Setting(msgspec.Struct, frozen=True, kw_only=True):
    """Where and for whom an answer is written; `digest` identifies the request, `now` is RFC 3339."""

    backend: Backend
    model: Model
    signer: Signer
    digest: bytes
    now: str
    hop_tokens: int = STREAMED_HOP_TOKENS
