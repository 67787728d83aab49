"""What Claude Code is started with, and what the ready banner says."""

from __future__ import annotations

import pytest

from dragoman.cli.banner import describe_upstream, ready_banner
from dragoman.cli.launch.client import claude_env, settings_conflicts
from dragoman.cli.settings import ClientKey
from dragoman.config import Config, UpstreamConfig

KEY = ClientKey(secret="dgm-secret", expression="$(cat /home/me/gateway.key)")


def env_for(**env: str) -> dict[str, str]:
    return claude_env(env, base_url="http://127.0.0.1:1", token="dgm-x")


def test_the_gateway_is_set_and_wins() -> None:
    env = env_for(ANTHROPIC_BASE_URL="https://elsewhere", ANTHROPIC_AUTH_TOKEN="other", PATH="/bin")
    assert (env["ANTHROPIC_BASE_URL"], env["ANTHROPIC_AUTH_TOKEN"], env["PATH"]) == (
        "http://127.0.0.1:1",
        "dgm-x",
        "/bin",
    )


@pytest.mark.parametrize(
    "name",
    [
        "ANTHROPIC_API_KEY",
        "CLAUDE_CODE_OAUTH_TOKEN",
        "CLAUDE_CODE_USE_BEDROCK",
        "CLAUDE_CODE_USE_VERTEX",
        "CLAUDE_CODE_USE_FOUNDRY",
        "ANTHROPIC_BEDROCK_BASE_URL",
        "ANTHROPIC_VERTEX_BASE_URL",
    ],
)
def test_n1_what_would_conflict_is_removed(name: str) -> None:
    assert name not in env_for(**{name: "1"})


def test_f7_f8_discovery_and_window_are_set_unless_the_user_did() -> None:
    env = env_for()
    assert env["CLAUDE_CODE_MAX_CONTEXT_TOKENS"] == "1000000"
    assert env["CLAUDE_CODE_ENABLE_GATEWAY_MODEL_DISCOVERY"] == "1"
    assert env_for(CLAUDE_CODE_MAX_CONTEXT_TOKENS="5")["CLAUDE_CODE_MAX_CONTEXT_TOKENS"] == "5"
    assert "ENABLE_TOOL_SEARCH" not in env
    assert env_for(ENABLE_TOOL_SEARCH="false")["ENABLE_TOOL_SEARCH"] == "false"


def test_a_chosen_model_stays_unless_it_was_chosen_for_a_cloud() -> None:
    assert env_for(ANTHROPIC_MODEL="gemini-x")["ANTHROPIC_MODEL"] == "gemini-x"
    assert "ANTHROPIC_MODEL" not in env_for(ANTHROPIC_MODEL="arn:aws:x", CLAUDE_CODE_USE_BEDROCK="1")


def test_credentials_in_custom_headers_are_removed() -> None:
    env = env_for(ANTHROPIC_CUSTOM_HEADERS="X-Team: a\nAuthorization: Bearer b\nx-api-key: c")
    assert env["ANTHROPIC_CUSTOM_HEADERS"] == "X-Team: a"
    assert "ANTHROPIC_CUSTOM_HEADERS" not in env_for(ANTHROPIC_CUSTOM_HEADERS="Authorization: Bearer b")


def test_no_proxy_covers_this_machine() -> None:
    assert env_for()["NO_PROXY"] == "127.0.0.1,localhost"
    assert env_for(NO_PROXY="corp, localhost")["NO_PROXY"] == "corp,localhost,127.0.0.1"


@pytest.mark.parametrize(
    ("settings", "conflicts"),
    [
        ({"env": {"ANTHROPIC_BASE_URL": "x", "FOO": "y"}}, ["env.ANTHROPIC_BASE_URL"]),
        (
            {"apiKeyHelper": "cmd", "env": {"ANTHROPIC_API_KEY": "x"}},
            ["apiKeyHelper", "env.ANTHROPIC_API_KEY"],
        ),
        ({"env": "odd"}, []),
        ({}, []),
        ([], []),
    ],
)
def test_conflicts_in_claudes_own_settings_are_found(settings: object, conflicts: list[str]) -> None:
    assert settings_conflicts(settings) == conflicts


def test_the_banner_names_the_key_but_never_shows_it() -> None:
    text = ready_banner(Config(), "http://127.0.0.1:8377", KEY)
    assert text.startswith("ready on http://127.0.0.1:8377 → Gemini emulator (no Google API key)\n")
    assert 'export ANTHROPIC_AUTH_TOKEN="$(cat /home/me/gateway.key)"' in text
    assert "export GEMINI_API_KEY=" in text
    assert KEY.secret not in text


@pytest.mark.parametrize(
    ("upstream", "words"),
    [
        (UpstreamConfig(kind="emulator"), "Gemini emulator (configured)"),
        (UpstreamConfig(api_key="k"), "Gemini (Google AI Studio)"),
        (UpstreamConfig(api_key="k", base_url="https://x"), "Gemini (https://x)"),
        (UpstreamConfig(kind="gemini"), "Gemini (Google AI Studio), clients send their own key"),
        (UpstreamConfig(project="p"), "Vertex AI (p, global)"),
        (UpstreamConfig(kind="vertex", api_key="k"), "Vertex AI (express key, global)"),
    ],
)
def test_who_answers_in_words(upstream: UpstreamConfig, words: str) -> None:
    assert describe_upstream(Config(upstream=upstream)) == words
    assert "GEMINI_API_KEY" not in ready_banner(Config(upstream=upstream), "http://x", None)
