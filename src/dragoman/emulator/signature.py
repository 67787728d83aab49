"""Thought signatures, issued and verified without stored state, so that any worker accepts them.

Layout before base64: version, nonce, length of the origin, origin, filler, HMAC-SHA256 over all of these. The
origin is `surface|family|target`; the target is `call:NAME` or `text`. Signatures do not cover the arguments
of a call, because clients rewrite them.
"""

from __future__ import annotations

import base64
import hashlib
import hmac

from dragoman.emulator.errors import ApiError
from dragoman.emulator.models import EmulatedModel
from dragoman.emulator.routes import Backend

TEXT_TARGET = "text"

_VERSION = b"\x12"
_NONCE_BYTES = 16
_TAG_BYTES = 32
_BODY_BYTES = 128

_SKIP_SENTINEL = "skip_thought_signature_validator"
_CONTEXT_SENTINEL = "context_engineering_is_the_way_to_go"


def call_target(name: str) -> str:
    return f"call:{name}"


class Signer:
    """Issues and verifies thought signatures for a seed.

    Processes with the same seed accept each other's signatures. The signatures in `foreign` are accepted
    without verification.
    """

    def __init__(self, seed: str, foreign: frozenset[bytes] = frozenset()) -> None:
        self._seed = seed
        self._key = hashlib.sha256(f"thought-signature:{seed}".encode()).digest()
        self._foreign = foreign

    def with_foreign_signatures(self, foreign: frozenset[bytes]) -> Signer:
        """Return a signer that also accepts these signatures."""
        return Signer(self._seed, foreign) if foreign else self

    def issue(self, backend: Backend, model: EmulatedModel, target: str, nonce: bytes) -> str:
        origin = f"{backend.surface}|{model.family}|{target}".encode()
        head = (
            _VERSION
            + nonce[:_NONCE_BYTES].ljust(_NONCE_BYTES, b"\0")
            + len(origin).to_bytes(2, "big")
            + origin
        )
        body = head + self._padding(head)
        return base64.b64encode(body + self._tag(body)).decode()

    def verify(self, signature: bytes, backend: Backend, model: EmulatedModel, target: str) -> None:
        """Raise Google's error unless this signer issued the signature for this origin and part."""
        if signature in _SENTINELS[backend.surface] or signature in self._foreign:
            return
        body, tag = signature[:-_TAG_BYTES], signature[-_TAG_BYTES:]
        if not body.startswith(_VERSION) or not hmac.compare_digest(tag, self._tag(body)):
            raise ApiError("Corrupted thought signature.")
        start = 1 + _NONCE_BYTES + 2
        size = int.from_bytes(body[start - 2 : start], "big")
        if body[start : start + size].decode() != f"{backend.surface}|{model.family}|{target}":
            raise ApiError("Invalid thought signature.")

    def _padding(self, head: bytes) -> bytes:
        """Pad the signature to the length of Google's."""
        missing = max(0, _BODY_BYTES - len(head))
        return hashlib.shake_128(self._key + head).digest(missing)

    def _tag(self, body: bytes) -> bytes:
        return hmac.digest(self._key, body, "sha256")


def _sentinel_bytes(word: str) -> set[bytes]:
    """Return both forms in which a sentinel arrives.

    A client sends it raw, where it happens to be valid base64url, or encoded by an SDK.
    """
    return {base64.urlsafe_b64decode(word + "=" * (-len(word) % 4)), word.encode()}


#: Values that skip the validation. Vertex documents only the first.
_SENTINELS = {
    "studio": frozenset(_sentinel_bytes(_SKIP_SENTINEL) | _sentinel_bytes(_CONTEXT_SENTINEL)),
    "vertex": frozenset(_sentinel_bytes(_SKIP_SENTINEL)),
}
