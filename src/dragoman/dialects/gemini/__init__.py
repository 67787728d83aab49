"""Google's generateContent API as an upstream.

AI Studio and Vertex AI are one dialect: they differ only in addresses and in a few details that depend on
`Target.backend`. `dragoman.dialects.gemini.client` is the same API as clients use it.
"""

from dragoman.dialects.gemini.built_in_tools import can_mix, one_of_a_kind
from dragoman.dialects.gemini.citations import admits
from dragoman.dialects.gemini.encode import (
    context_tokens,
    decode_count,
    encode_count,
    encode_request,
    ends_with_user,
    origin_of,
)
from dragoman.dialects.gemini.errors import decode_error
from dragoman.dialects.gemini.models import ALIASES, ModelProfile, profile_of

name = "gemini"

__all__ = [
    "ALIASES",
    "ModelProfile",
    "admits",
    "can_mix",
    "context_tokens",
    "decode_count",
    "decode_error",
    "encode_count",
    "encode_request",
    "ends_with_user",
    "name",
    "one_of_a_kind",
    "origin_of",
    "profile_of",
]
