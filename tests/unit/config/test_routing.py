"""Which Gemini model a client's name means."""

from __future__ import annotations

import pytest

from dragoman.config import ModelsConfig, model_for

MODELS = ModelsConfig(
    haiku="gemini-h",
    sonnet="gemini-s",
    opus="gemini-o",
    default="gemini-d",
    rules={
        "gpt-5": "gemini-five",
        "mini": "gemini-small",
        "openai/o3": "gemini-three",
        "opus-4-1": "gemini-old",
    },
)


@pytest.mark.parametrize(
    ("name", "model"),
    [
        ("gemini-3.5-flash", "gemini-3.5-flash"),
        ("gemini-99-never-heard-of", "gemini-99-never-heard-of"),
        ("models/gemini-3.5-flash", "gemini-3.5-flash"),
        ("google/gemini-3.5-flash", "gemini-3.5-flash"),
        ("publishers/google/models/gemini-3.5-flash", "gemini-3.5-flash"),
        ("gemini-3.5-flash[1m]", "gemini-3.5-flash"),
        ("gemma-4", "gemma-4"),
        ("gemini-x\r\ny: 1", "gemini-x\r\ny: 1"),  # refused where it would become part of an address
        ("gemini-", "gemini-"),
        ("claude-gemini-3.5-flash", "gemini-3.5-flash"),
        ("claude-gemini-3.5-flash[1m]", "gemini-3.5-flash"),
        ("claude-haiku-4-5-20251001", "gemini-h"),
        ("claude-3-5-haiku-latest", "gemini-h"),
        ("sonnet", "gemini-s"),
        ("claude-sonnet-4-5[1m]", "gemini-s"),
        ("claude-sonnet-4-5[1M]", "gemini-s"),
        (" claude-sonnet-4-5 ", "gemini-s"),
        ("Claude-Opus-4", "gemini-o"),
        ("us.anthropic.claude-opus-4-20250514-v1:0", "gemini-o"),
        ("anthropic/claude-opus-4", "gemini-o"),
        ("anthropic.claude-sonnet-4-20250514-v1:0", "gemini-s"),
        ("us.anthropic.claude-sonnet-4-5-20250929-v1:0[1m]", "gemini-s"),
        (
            "arn:aws:bedrock:us-east-1:123456789012:inference-profile/us.anthropic.claude-haiku-4-5-v1:0",
            "gemini-h",
        ),
        ("arn:aws:bedrock:eu-west-1:1:application-inference-profile/abc123", "gemini-d"),
        ("amazon.nova-pro-v1:0", "gemini-d"),
        ("google.gemini-3.8-flash", "gemini-3.8-flash"),
        ("us.anthropic.claude-gemini-3.8-flash-v1:0", "gemini-3.8-flash"),
        ("arn:aws:bedrock:us-east-1:1:inference-profile/gemini-3.8-flash", "gemini-3.8-flash"),
        ("us.anthropic.claude-opus-4-1-20250805-v1:0", "gemini-old"),
        ("claude-sonnet-4@20250514", "gemini-s"),
        ("claude-opus-4-1-20250805", "gemini-old"),
        ("gpt-5", "gemini-five"),
        ("gpt-5-codex", "gemini-five"),
        ("gpt-4o-MINI", "gemini-small"),
        ("openai/o3", "gemini-three"),
        ("gpt-4o", "gemini-d"),
        ("", "gemini-d"),
        ("my-gemma", "gemini-d"),
    ],
)
def test_every_name_means_a_model(name: str, model: str) -> None:
    assert model_for(name, MODELS) == model


def test_m1_the_defaults_are_aliases() -> None:
    models = ModelsConfig()
    assert all(
        name.endswith("-latest") for name in (models.haiku, models.sonnet, models.opus, models.default)
    )
