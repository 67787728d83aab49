"""Encode the model's reply as Google does: chunks, the merged response, and all metadata.

`ResponseContext` has everything that a response depends on besides the reply.
"""

from __future__ import annotations

import msgspec

from dragoman.emulator.models import EmulatedModel
from dragoman.emulator.routes import Backend
from dragoman.emulator.signature import Signer

#: The largest hop of Gemini 4, for streamed and for unary responses.
STREAMED_HOP_TOKENS = 65_536
UNARY_HOP_TOKENS = 32_768


class ResponseContext(msgspec.Struct, frozen=True, kw_only=True):
    """The context in which an answer is encoded.

    `digest` identifies the request, `now` is an RFC 3339 timestamp.
    """

    backend: Backend
    model: EmulatedModel
    signer: Signer
    digest: bytes
    now: str
    hop_tokens: int = STREAMED_HOP_TOKENS
