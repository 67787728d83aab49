"""Which key may call what: any will do, except a few names that stand for the keys Google refuses."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dragoman.emulator.models import find_model
from dragoman.emulator.refusal import Refusal, invalid_key
from dragoman.emulator.routes import Route

#: A key that never called a closed model before.
NEW_USER = "new-user-key"


def check_key(key: str, route: Route) -> None:
    """Raise what Google answers to a key of this name; the model is looked at last."""
    refuse = REFUSED_KEYS.get(key)
    if refuse is not None:
        raise refuse()
    model = find_model(route.model, route.backend.version) if key == NEW_USER else None
    if model is not None and model.closed and not route.backend.is_vertex:
        raise Refusal(
            f"This model models/{model.id} is no longer available to new users. Please update your code to use "
            "a newer model for the latest features and improvements.",
            code=404,
        )


def _no_key() -> Refusal:
    return Refusal(
        "Method doesn't allow unregistered callers (callers without established identity). Please use API "
        "Key or other form of API consumer identity to call this API.",
        code=403,
    )


def _token_of_another_kind() -> Refusal:
    info: dict[str, Any] = {
        "@type": "type.googleapis.com/google.rpc.ErrorInfo",
        "reason": "ACCESS_TOKEN_TYPE_UNSUPPORTED",
        "domain": "googleapis.com",
        "metadata": {"service": "generativelanguage.googleapis.com"},
    }
    return Refusal(
        "Request had invalid authentication credentials. Expected OAuth 2 access token, login cookie or other "
        "valid authentication credential.",
        code=401,
        status="UNAUTHENTICATED",
        details=[info],
    )


REFUSED_KEYS: dict[str, Callable[[], Refusal]] = {
    "invalid-key": invalid_key,
    "missing-key": _no_key,
    "oauth-key": _token_of_another_kind,
}
