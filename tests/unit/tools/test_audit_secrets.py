"""What looks like a secret is never written down; what does not stays readable."""

from __future__ import annotations

from typing import Any

import pytest

from dragoman.tools.secrets import REDACTED, redact, redact_value

LONG = "aB3" * 12


@pytest.mark.parametrize(
    "secret",
    [
        f"AIza{LONG}",
        f"AQ.{LONG}",
        f"ya29.{LONG}",
        f"dgm-{LONG}",
        f"sk-{LONG}",
        f"sk-ant-api03-{LONG}",
        f"rk_live_{LONG}",
        f"ghp_{LONG}",
        f"github_pat_{LONG}",
        f"glpat-{LONG}",
        "xoxb-123456789012-abc",
        "AKIA" + "ABCD1234" * 2,
        f"hf_{LONG}",
        f"npm_{LONG}",
        f"pypi-{LONG}",
        f"eyJ{LONG}.eyJ{LONG}.{LONG}",
        f"-----BEGIN RSA PRIVATE KEY-----\n{LONG}\n-----END RSA PRIVATE KEY-----",
        f"-----BEGIN PRIVATE KEY-----\n{LONG} cut",
    ],
)
def test_keys_are_known_by_their_shape(secret: str) -> None:
    assert redact(f"before {secret}") == f"before {REDACTED}"


@pytest.mark.parametrize(
    ("text", "clean"),
    [
        ("Authorization: Bearer abcdef", f"Authorization: Bearer {REDACTED}"),
        ("curl -H 'Authorization: abcdef'", f"curl -H 'Authorization: {REDACTED}'"),
        ("bearer abcdef", f"bearer {REDACTED}"),
        ("PASSWORD=hunter2 ls", f"PASSWORD={REDACTED} ls"),
        ('{"api_key": "hunter2"}', f'{{"api_key": "{REDACTED}"}}'),
        ("GITHUB_TOKEN=hunter2", f"GITHUB_TOKEN={REDACTED}"),
        ("psql --password hunter2 -l", f"psql --password {REDACTED} -l"),
        ("postgres://anna:hunter2@db/x", f"postgres://anna:{REDACTED}@db/x"),
        ("the token is counted", "the token is counted"),
        ("src/secret_santa.py", "src/secret_santa.py"),
        ("https://example.com:8080/a@b", "https://example.com:8080/a@b"),
        ("sk-learn", "sk-learn"),
    ],
)
def test_words_give_secrets_away_and_prose_stays(text: str, clean: str) -> None:
    assert redact(text) == clean


@pytest.mark.parametrize(
    ("value", "clean"),
    [
        ({"password": "x"}, {"password": REDACTED}),
        ({"api-key": 123}, {"api-key": REDACTED}),
        ({"apiKey": "x", "clientSecret": "y"}, {"apiKey": REDACTED, "clientSecret": REDACTED}),
        ({"access_tokens": ["a", "b"]}, {"access_tokens": [REDACTED, REDACTED]}),
        ({"token": {"path": "a"}}, {"token": {"path": "a"}}),
        ({"secret": True, "token": None}, {"secret": True, "token": None}),
        ({"max_tokens": 5, "path": "a"}, {"max_tokens": 5, "path": "a"}),
        ({"tokenizer": "x"}, {"tokenizer": "x"}),
        (
            {"command": ["psql", "--password", "x", "-l", "y"]},
            {"command": ["psql", "--password", REDACTED, "-l", "y"]},
        ),
        ([1, 2.5, "plain"], [1, 2.5, "plain"]),
        ({f"sk-{LONG}": 1}, {REDACTED: 1}),
    ],
)
def test_what_stands_under_a_telling_name_goes_whatever_it_looks_like(value: Any, clean: Any) -> None:
    assert redact_value(value, max_text=100) == clean


def test_a_cut_never_leaves_half_a_key() -> None:
    assert (
        redact_value("x" * 90 + f" AIza{LONG}", max_text=100) == "x" * 90 + " [redacted [1 more characters]"
    )
