"""What values may not be: addresses without keys, sample keys, base URLs that lead astray."""

from __future__ import annotations

import pytest

from tests.unit.config.builders import KEY, loaded, refusal


@pytest.mark.parametrize("host", ["127.0.0.1", "127.8.8.8", "::1", "localhost", "LOCALHOST"])
def test_loopback_needs_no_keys(host: str) -> None:
    assert loaded(server__host=host, server__no_auth=True).config.server.host == host


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.1.2", "example.com"])
def test_q10_any_other_address_needs_keys(host: str) -> None:
    said = refusal(server__host=host)
    assert f"--host: {host} can be reached from outside, so gateway keys must be set" in said
    assert "no_auth works on loopback only" in refusal(server__host=host, server__no_auth=True)
    assert loaded(server__host=host, server__keys=(KEY,)).config.server.keys == (KEY,)
    assert loaded(server__host=host, server__admin_keys=(KEY,)).config.server.admin_keys == (KEY,)
    assert loaded(None, {"DRAGOMAN_GATEWAY_KEY": KEY}, server__host=host).config.server.host == host


def test_q10_keys_do_not_excuse_no_auth() -> None:
    assert "no_auth works on loopback only" in refusal(
        server__host="0.0.0.0", server__keys=(KEY,), server__no_auth=True
    )


@pytest.mark.parametrize(
    "key",
    [
        "your-api-key",
        "your-api-key-1",
        "YOUR_API_KEY",
        "changeme",
        "change-me-please-now",
        "test",
        "sk-1234567890abcdef",
    ],
)
def test_q10_sample_gateway_keys_are_refused(key: str) -> None:
    assert "server.keys: this is a sample, not a key" in refusal(f"[server]\nkeys = ['{key}']")
    assert "server.admin_keys: this is a sample" in refusal(f"[server]\nadmin_keys = ['{key}']")
    assert "DRAGOMAN_GATEWAY_KEY: this is a sample" in refusal(None, {"DRAGOMAN_GATEWAY_KEY": key})


@pytest.mark.parametrize("key", ["sk-short", "a", "123456789012345"])
def test_short_gateway_keys_are_refused(key: str) -> None:
    assert "at least 16 characters" in refusal(server__keys=(key,))


def test_keys_no_header_can_carry_are_refused() -> None:
    assert "only visible ASCII" in refusal(server__keys=("a key with spaces in it",))
    assert "GEMINI_API_KEY: a key has only visible ASCII" in refusal(None, {"GEMINI_API_KEY": "AIza\nb"})


def test_sample_gemini_keys_are_refused_for_google_but_not_elsewhere() -> None:
    env = {"GEMINI_API_KEY": "YOUR_GEMINI_API_KEY"}
    assert "GEMINI_API_KEY: this is a sample, not a Gemini key" in refusal(None, env)
    assert loaded(None, env | {"GEMINI_BASE_URL": "http://127.0.0.1:9"}).config.backend == "gemini"
    assert loaded(None, env, upstream__kind="emulator").config.backend == "emulator"


def test_no_refusal_repeats_a_secret() -> None:
    assert "hunter2" not in refusal("[upstream]\napi_key = ['hunter2']")
    assert "hunter2" not in refusal(server__keys=("hunter2",))
    assert "hunter2" not in refusal(None, {"GEMINI_BASE_URL": "https://me:hunter2@example.com"})
    assert "hunter2" not in refusal(None, {"GEMINI_BASE_URL": "ftp://me:hunter2@example.com?key=hunter2"})


@pytest.mark.parametrize(
    "given",
    [
        "https://example.com/gw/v1beta",
        "https://example.com/gw/v1beta/",
        "https://example.com/gw/v1",
        "https://example.com/gw/v1beta1",
        "https://example.com/gw/v1beta/models",
        "https://example.com/gw/v1beta/models/gemini-pro:generateContent",
        "https://example.com/gw/v1beta/openai/",
    ],
)
def test_n4_a_version_in_the_base_url_is_taken_off_with_a_note(given: str) -> None:
    result = loaded(None, {"GEMINI_BASE_URL": given})
    assert result.config.upstream.base_url == "https://example.com/gw"
    assert result.notes[0].startswith("GEMINI_BASE_URL: /v1")


@pytest.mark.parametrize("given", ["https://example.com", "https://example.com/v1/gw", "http://[::1]:80"])
def test_other_base_urls_stay_as_they_are(given: str) -> None:
    result = loaded(None, {"GEMINI_BASE_URL": given})
    assert (result.config.upstream.base_url, result.notes) == (given, ())


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ("example.com", "must be a URL like https://example.com, not 'example.com'"),
        ("https://", "must be a URL"),
        ("http://[bad", "this is not a URL"),
        ("https://example.com:99999", "this is not a URL"),
        ("http://example.com", "must be https: the key would cross the network to example.com in the clear"),
        ("https://example.com?key=1", "must be without user, password, ? and #"),
        ("https://me:pw@example.com", "must be without user"),
    ],
)
def test_wrong_base_urls_are_refused(given: str, words: str) -> None:
    assert f"my.toml: upstream.base_url: {words}" in refusal(f"[upstream]\nbase_url = '{given}'")
