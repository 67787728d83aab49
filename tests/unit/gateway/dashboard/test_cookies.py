from __future__ import annotations

import pytest

from dragoman.gateway.dashboard.auth import (
    DashboardCookie,
    cookie_name,
    cookie_value,
    encode_cookie,
    is_same_origin,
    set_cookie,
    verify_cookie,
)

HASH, OTHER = "a" * 64, "b" * 64
GIVEN = DashboardCookie(id="abc123", expires_s=2_000, secret=HASH)
VALUE = encode_cookie(GIVEN)


def test_a_pass_is_known_again_by_its_key() -> None:
    assert verify_cookie(VALUE, (OTHER, HASH), 1_999) == GIVEN


def test_a_pass_ends() -> None:
    assert verify_cookie(VALUE, (HASH,), 2_000) is None


def test_a_pass_ends_with_its_key() -> None:
    assert verify_cookie(VALUE, (OTHER,), 1_000) is None
    assert verify_cookie(VALUE, (), 1_000) is None


@pytest.mark.parametrize(
    "value",
    [
        "",
        "x",
        "..",
        VALUE + "0",
        VALUE[:-1],
        VALUE.replace("2000", "9000"),
        VALUE.replace("abc123", "abc124"),
        VALUE.replace("abc123", ""),
        VALUE.replace("abc123", "a" * 65),
        VALUE.replace("2000", "٢٠٠٠"),
        VALUE.replace("2000", "-2000"),
        VALUE.replace("2000", "2" * 5_000),
        VALUE + ".x",
        VALUE[:-3] + "éé",
    ],
)
def test_a_pass_that_was_changed_is_none(value: str) -> None:
    assert verify_cookie(value, (HASH,), 1_000) is None


def test_gateways_on_one_machine_have_cookies_of_their_own() -> None:
    assert cookie_name({"host": "localhost:8377"}) == "dragoman_8377"
    assert cookie_name({"host": "[::1]:8378"}) == "dragoman_8378"
    assert cookie_name({"host": "gateway.example"}) == "dragoman"
    assert cookie_name({}) == "dragoman"


def test_the_cookie_is_found_among_others() -> None:
    headers = {"host": "localhost:1", "cookie": f"a=b; dragoman_1={VALUE}; dragoman_2=x"}
    assert cookie_value(headers) == VALUE
    assert cookie_value({"host": "localhost:3", "cookie": headers["cookie"]}) == ""
    assert cookie_value({"host": "localhost:1"}) == ""


def test_the_cookie_goes_to_no_script_and_to_no_other_site() -> None:
    name, value = set_cookie({"host": "localhost:1", "origin": "http://localhost:1"}, VALUE, 60)
    assert name == "set-cookie"
    words = value.split("; ")
    assert words[0] == f"dragoman_1={VALUE}"
    assert {"HttpOnly", "SameSite=Strict", "Path=/dashboard", "Max-Age=60"} == set(words[1:])


def test_over_tls_it_never_leaves_tls() -> None:
    _, value = set_cookie({"host": "g.example", "origin": "https://g.example"}, VALUE, 60)
    assert "Secure" in value.split("; ")


@pytest.mark.parametrize(
    ("headers", "own"),
    [
        ({"origin": "http://localhost:1", "host": "localhost:1"}, True),
        ({"origin": "https://g.example", "host": "g.example"}, True),
        ({"origin": "http://localhost:2", "host": "localhost:1"}, False),
        ({"origin": "http://localhost", "host": "localhost:1"}, False),
        ({"origin": "null", "host": "localhost:1"}, False),
        ({"host": "localhost:1"}, False),
        ({}, False),
    ],
)
def test_a_page_of_another_port_is_not_ours(headers: dict[str, str], own: bool) -> None:
    assert is_same_origin(headers) is own
