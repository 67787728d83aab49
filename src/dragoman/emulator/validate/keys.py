"""API keys: any key is accepted, except a few names that select the errors of a rejected key."""

from __future__ import annotations

from collections.abc import Callable

from dragoman.emulator.models import find_model
from dragoman.emulator.refusal import ApiError, invalid_key_error, missing_key_error, unsupported_token_error
from dragoman.emulator.routes import GeminiRoute

#: A key that never called a model which is closed to new users.
NEW_USER_KEY = "new-user-key"


def check_api_key(key: str, route: GeminiRoute) -> None:
    """Raise Google's error for a key with this name. The model is checked last."""
    refuse = REJECTED_KEYS.get(key)
    if refuse is not None:
        raise refuse(route)
    model = find_model(route.model, route.backend.version) if key == NEW_USER_KEY else None
    if model is not None and model.closed_to_new_users and not route.backend.is_vertex:
        raise ApiError(
            f"This model models/{model.id} is no longer available to new users. Please update your code to use "
            "a newer model for the latest features and improvements.",
            code=404,
        )


REJECTED_KEYS: dict[str, Callable[[GeminiRoute], ApiError]] = {
    "invalid-key": lambda _: invalid_key_error(),
    "missing-key": lambda _: missing_key_error(),
    "oauth-key": lambda route: unsupported_token_error(route.method),
}
