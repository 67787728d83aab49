"""What looks like a secret is never written down; what does not stays readable."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import quote

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from dragoman.errors import InvalidRequest, UpstreamError
from dragoman.redact import _KNOWN_CLEAN, REDACTED, Redactor, redact, redact_value

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
        f"-----BEGIN PRIVATE KEY-----\\n{LONG}\\\\n{LONG}\\r\\n-----END PRIVATE KEY-----",
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
        ("Basic dXNlcjpwYXNz", f"Basic {REDACTED}"),
        ("a basic introduction to BASIC Programming", "a basic introduction to BASIC Programming"),
        (
            '{"token": 12345, "secret": null, "password": [1234]}',
            '{"token": 12345, "secret": null, "password": [1234]}',
        ),
        (r'{"args": "{\"password\": \"hunter2\"}"}', rf'{{"args": "{{\"password\": \"{REDACTED}\"}}"}}'),
        (
            '"Authorization": "AWS4-HMAC-SHA256 Credential=A, Signature=0f0f"',
            f'"Authorization": "{REDACTED}"',
        ),
        (f"password={REDACTED}", f"password={REDACTED}"),
        ("token: é😀éé next", f"token: {REDACTED} next"),
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


#: What a hostile or an unlucky text is made of.
PIECES = [
    "token",
    "secret",
    '"',
    "\\",
    "'",
    ":",
    "=",
    " ",
    "{",
    "}",
    "[",
    "]",
    ",",
    "1234",
    "null",
    "abcdef",
    "é",
    "\n",
]
PIECES += [
    "authorization",
    "bearer ",
    "basic ",
    "--token ",
    f"AIza{LONG}",
    "eyJ",
    "://",
    "@",
    "-----BEGIN",
    "PRIVATE KEY-----",
]


@given(
    st.recursive(
        st.none() | st.integers() | st.lists(st.sampled_from(PIECES), max_size=12).map("".join),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(st.lists(st.sampled_from(PIECES), max_size=4).map("".join), inner, max_size=3)
        ),
        max_leaves=12,
    ),
    st.booleans(),
)
@example({"authorization:PRIVATE KEY-----": None}, False)
@example({"authorization": 'basic eyJ]":'}, False)
@example({"authorization: Bearer AIza": "authorization: Bearer 12345"}, True)
def test_json_stays_json(document: Any, twice: bool) -> None:
    """As it is captured, and with JSON inside its texts."""
    text = json.dumps({"arguments": json.dumps(document)} if twice else document)
    clean = Redactor([f"canary-{LONG}"]).body(text.encode())
    json.loads(clean)
    assert redact(clean.decode()) == clean.decode()  # and once is enough


@given(st.lists(st.sampled_from(PIECES) | st.text(max_size=3), max_size=30).map("".join))
def test_a_text_stays_a_text(text: str) -> None:
    redact(text).encode("utf-8", "surrogatepass")
    assert Redactor().scrub(text).count("\n") <= text.count("\n")


KNOWN = 'what "ever/it looks like'


@pytest.mark.parametrize(
    "said",
    [f"x {KNOWN} y", f"/key/{quote(KNOWN, safe='')}/v1", json.dumps({"a": KNOWN}), f"{KNOWN}{KNOWN}"],
)
def test_q11_a_known_secret_goes_however_it_is_spelt(said: str) -> None:
    redactor = Redactor([KNOWN, "short"])
    for clean in (redactor.scrub(said), redactor.text(said), redactor.body(said.encode()).decode()):
        assert REDACTED in clean
        assert "looks" not in clean


def test_q11_an_error_is_told_without_the_key_it_complains_of() -> None:
    """nyro#68: the client was told `?key=AIza…`."""
    error = UpstreamError(
        f"refused: https://x/v1?key=AIza{LONG}", where=f"tools[0].{KNOWN}", kind="permission"
    )
    error.native = f'{{"error": {{"message": "AIza{LONG}", "token": "sounds so"}}}}'.encode()
    told = Redactor([KNOWN]).redact_error(error)
    assert str(told) == f"tools[0].{REDACTED}: refused: https://x/v1?key={REDACTED}"
    assert isinstance(told, UpstreamError)
    assert told.native == f'{{"error": {{"message": "{REDACTED}", "token": "sounds so"}}}}'.encode()
    assert told.kind == "permission"
    assert str(Redactor().redact_error(InvalidRequest("plain", where="a"))) == "a: plain"


def test_what_is_remembered_of_texts_is_clean_and_bounded() -> None:
    redactor = Redactor([KNOWN])
    for _ in range(2):
        assert redactor.scrub(f"/v1?key={KNOWN}") == f"/v1?key={REDACTED}"
    for number in range(1000):
        redactor.scrub(f"agent/{number}")
    redactor.scrub("long " * 1000)
    assert len(redactor._clean) <= 256
    assert all(text.startswith("agent/") for text in redactor._clean)


def test_a_word_of_the_language_is_no_secret() -> None:
    assert Redactor(["short"]).text("a short text") == "a short text"


def test_what_is_told_to_the_caller_keeps_what_only_sounds_like_a_secret() -> None:
    said = "the token: unexpected"
    assert Redactor().scrub(said) == said
    assert REDACTED in Redactor().text(said)


@pytest.mark.parametrize(
    "piece",
    [
        "eyJ",
        "AIza",
        "token ",
        "token:",
        "token\\",
        "authorization: a",
        "x://a:b",
        "-----BEGIN",
        "sk-",
        " ",
        "1",
        "basic ",
    ],
)
def test_the_work_is_linear(piece: str) -> None:
    """A megabyte of anything; a quadratic search would take hours."""
    text = piece * (1_000_000 // len(piece))
    assert redact(f"{text}password=hunter2").endswith((REDACTED, "hunter2"))


def test_a_cut_never_leaves_half_a_key() -> None:
    assert (
        redact_value("x" * 90 + f" AIza{LONG}", max_text=100) == "x" * 90 + " [redacted [1 more characters]"
    )


def test_texts_that_were_clean_are_forgotten_before_there_are_many() -> None:
    redactor = Redactor([KNOWN])
    for number in range(3 * _KNOWN_CLEAN):
        assert redactor.scrub(f"text {number}") == redactor.scrub(f"text {number}") == f"text {number}"
        assert redactor.scrub(f"text {number} {KNOWN}") == f"text {number} [redacted]"
    assert len(redactor._clean) <= _KNOWN_CLEAN
