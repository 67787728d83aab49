"""The computeTokens method of Vertex: the tokens of a text, with an id for each."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any

from dragoman.emulator.contents import role_of
from dragoman.emulator.resources.catalog import require_generative_model
from dragoman.emulator.routes import GeminiRoute
from dragoman.emulator.tokens import split_tokens, token_id


def compute_tokens(route: GeminiRoute, request: Mapping[str, Any]) -> dict[str, Any]:
    """Return `{tokensInfo: [{role, tokenIds, tokens}]}`, one item for each content."""
    require_generative_model(route)
    return {"tokensInfo": [_describe_tokens(content) for content in request.get("contents", ())]}


def _describe_tokens(content: Mapping[str, Any]) -> dict[str, Any]:
    tokens = [token for part in content.get("parts", ()) for token in split_tokens(part.get("text", ""))]
    return {
        "role": role_of(content),
        "tokenIds": [str(token_id(token)) for token in tokens],
        "tokens": [base64.b64encode(token.encode()).decode() for token in tokens],
    }
