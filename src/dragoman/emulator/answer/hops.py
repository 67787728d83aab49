"""Long decode: a Gemini 4 answer comes in hops, and a continuation token starts the next hop.

A token is the position in the text and a signature over the position and the request. The client must send
the same request again, and the model is deterministic, so the text is the same again.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
from collections.abc import Mapping
from typing import Any

import msgspec

from dragoman.emulator.answer.setting import ResponseContext
from dragoman.emulator.refusal import catch_all_error

_CONTINUATION_FIELD = "continuationToken"
_POSITION_BYTES = 8


def issue_continuation_token(request: Mapping[str, Any], setting: ResponseContext, position: int) -> str:
    """Return the token that continues the answer to this request at a position."""
    return base64.b64encode(_token(request, setting, position)).decode()


def read_continuation_position(request: Mapping[str, Any], setting: ResponseContext) -> int:
    """Return the position at which the answer continues, 0 without a token.

    Raise a `Refusal` for a token that was issued for another request.
    """
    token = request.get(_CONTINUATION_FIELD)
    if not token:
        return 0
    if not setting.model.has_long_decode:
        raise catch_all_error("continuation_token: this model has no long decode")
    position = int.from_bytes(token[:_POSITION_BYTES], "big")
    if not hmac.compare_digest(_token(request, setting, position), token):
        raise catch_all_error("continuation_token: it was not issued for this request")
    return position


def _token(request: Mapping[str, Any], setting: ResponseContext, position: int) -> bytes:
    # Ignore empty fields: Google's SDK resumes with an additional `generationConfig: {}`.
    identity = {name: value for name, value in request.items() if name != _CONTINUATION_FIELD and value}
    mark = hashlib.blake2b(msgspec.json.encode(identity, order="deterministic"), digest_size=16)
    target = f"continuation:{position}:{mark.hexdigest()}"
    signature = setting.signer.issue(setting.backend, setting.model, target, mark.digest())
    return position.to_bytes(_POSITION_BYTES, "big") + base64.b64decode(signature)
