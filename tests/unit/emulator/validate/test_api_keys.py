"""Keys: any will do, but a few names stand for what Google refuses."""

from __future__ import annotations

import pytest

from dragoman.emulator.errors import ApiError
from dragoman.emulator.routes import GeminiRoute, find_route
from dragoman.emulator.validate import check_api_key
from tests.unit.emulator.builders import OLD_MODEL, hello, send


def route(model: str, path: str = "/v1beta/models/{}:generateContent") -> GeminiRoute:
    found = find_route("POST", path.format(model))
    assert found is not None
    return found


def refusal(key: str, model: str = "gemini-3.8-flash") -> ApiError:
    with pytest.raises(ApiError) as raised:
        check_api_key(key, route(model))
    return raised.value


NAMED = {
    "invalid-key": (400, "INVALID_ARGUMENT", "API key not valid.", "API_KEY_INVALID"),
    "missing-key": (403, "PERMISSION_DENIED", "Method doesn't allow unregistered callers", ""),
    "oauth-key": (
        401,
        "UNAUTHENTICATED",
        "Request had invalid authentication credentials.",
        "ACCESS_TOKEN_TYPE_UNSUPPORTED",
    ),
}


@pytest.mark.parametrize(("key", "wanted"), NAMED.items())
def test_each_named_key_is_refused_as_google_refuses_its_kind(
    key: str, wanted: tuple[int, str, str, str]
) -> None:
    code, status, words, reason = wanted
    found = refusal(key)
    assert (found.code, found.body()["error"]["status"]) == (code, status)
    assert found.message.startswith(words)
    assert [detail["reason"] for detail in found.details if "reason" in detail] == (
        [reason] if reason else []
    )


@pytest.mark.parametrize("model", ["gemini-2.5-pro", "gemini-2.5-flash", "gemini-2.5-flash-lite"])
def test_models_closed_to_new_users_are_not_found_with_a_new_key(model: str) -> None:
    found = refusal("new-user-key", model)
    assert found.code == 404
    assert found.message.startswith(f"This model models/{model} is no longer available to new users.")


def test_everything_else_is_open() -> None:
    vertex = "/v1/projects/p/locations/l/publishers/google/models/{}:generateContent"
    check_api_key("new-user-key", route("gemini-3.8-flash"))
    check_api_key("new-user-key", route("gemini-2.5-pro", vertex))
    for key in ("", "any", "AQ.x"):
        check_api_key(key, route("gemini-2.5-pro"))


@pytest.mark.parametrize(
    ("key", "status"), [("invalid-key", 400), ("missing-key", 403), ("oauth-key", 401), ("any", 200)]
)
def test_a_named_key_meets_its_refusal_at_the_door(key: str, status: int) -> None:
    assert send(hello(), key=key).status == status


def test_a_closed_model_is_closed_to_the_new_users_key_only() -> None:
    assert send(hello(), model=OLD_MODEL, key="new-user-key").status == 404
    assert send(hello(), model=OLD_MODEL, key="any").status == 200
