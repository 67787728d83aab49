"""API keys: any key is accepted, except a few names that select the errors of a rejected key."""

from __future__ import annotations

from collections.abc import Callable

from dragoman.emulator.models import find_model
from dragoman.emulator.refusal import Refusal, invalid_key, no_key, wrong_token
from dragoman.emulator.routes import Route

#: A key that never called a model which is closed to new users.
NEW_USER = "new-user-key"


def check_key(key: str, route: Route) -> None:
    """Raise Google's error for a key with this name. The model is checked last."""
    refuse = REFUSED_KEYS.get(key)
    if refuse is not None:
        raise refuse(route)
    model = find_model(route.model, route.backend.version) if key == NEW_USER else None
    if model is not None and model.closed and not route.backend.is_vertex:
        raise Refusal(
            f"This model models/{model.id} is no longer available to new users. Please update your code to use "
            "a newer model for the latest features and improvements.",
            code=404,
        )


REFUSED_KEYS: dict[str, Callable[[Route], Refusal]] = {
    "invalid-key": lambda _: invalid_key(),
    "missing-key": lambda _: no_key(),
    "oauth-key": lambda route: wrong_token(route.method),
}
