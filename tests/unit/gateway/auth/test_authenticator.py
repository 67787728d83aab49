"""The gate: who is let in, by which proof, and as whom."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from dragoman.errors import InvalidRequest, NotAllowed
from dragoman.gateway.auth.authenticator import Authenticator, Caller
from dragoman.gateway.auth.sigv4 import SigV4Claim
from tests.unit.gateway.auth.botocore_requests import NOW_S, SECRET, headers_of, signed

OTHER = "dgm-another-key-of-sufficient-length"
KEYS = ("dgm-the-first-key-of-three", SECRET, OTHER)


def gate(
    *, keys: tuple[str, ...] = KEYS, open_to_all: bool = False, admin_keys: tuple[str, ...] = ()
) -> Authenticator:
    return Authenticator(keys, open_to_all=open_to_all, allowed_hosts=(), admin_keys=admin_keys)


def let_in(gate: Authenticator, headers: Mapping[str, str], query: Mapping[str, str] | None = None) -> Caller:
    """Somebody who needs no body to be known."""
    caller = gate.authenticate(headers, query or {}, NOW_S)
    assert isinstance(caller, Caller)
    return caller


def prove(gate: Authenticator, body: bytes = b"{}", **request: Any) -> Caller:
    head = signed(**request)
    claim = gate.authenticate(headers_of(head), {}, NOW_S)
    assert isinstance(claim, SigV4Claim)
    return gate.verify_signature(claim, head, body)


@pytest.mark.parametrize("key", KEYS)
def test_one_key_is_one_caller_however_it_is_shown(key: str) -> None:
    """What was kept for one must be found again with another client, and by nobody else."""
    door = gate()
    callers = [
        let_in(door, {"authorization": f"Bearer {key}"}),
        let_in(door, {"x-api-key": key}),
        let_in(door, {"x-goog-api-key": key}),
        let_in(door, {}, {"key": key}),
        prove(door, secret=key),
        prove(door, secret=key, access_key="another/name", service="q", region="eu-west-1"),
        prove(gate(open_to_all=True), secret=key),
    ]
    assert len(set(callers)) == 1
    others = [let_in(door, {"x-api-key": other}) for other in KEYS if other != key]
    assert callers[0] not in others


def test_a_key_keeps_its_scope_for_ever() -> None:
    """What an older gateway stored under it must be found again."""
    assert prove(gate()).scope == "a92d952d3b9076d246a64b0dd92095e6"


def test_a_wrong_secret_is_refused_and_told_what_the_secret_must_be() -> None:
    with pytest.raises(NotAllowed, match="secret access key must be the gateway key") as refusal:
        prove(gate(), secret="AWS-secret-of-somebody")
    assert refusal.value.kind == "authentication"


def test_another_body_than_the_signed_one_is_refused() -> None:
    with pytest.raises(NotAllowed, match="does not fit"):
        prove(gate(), b'{"more":1}')


def test_without_keys_nobody_can_sign() -> None:
    for secret in ("", "anything"):
        with pytest.raises(NotAllowed):
            prove(gate(keys=()), secret=secret)


def test_a_claim_without_its_shape_is_refused_before_the_body() -> None:
    with pytest.raises(NotAllowed, match="must have a Credential"):
        gate().authenticate({"authorization": "AWS4-HMAC-SHA256 x"}, {}, NOW_S)
    with pytest.raises(NotAllowed, match="15 minutes apart"):
        gate().authenticate(headers_of(signed()), {}, NOW_S + 1000)


@pytest.mark.parametrize("name", ["X-Amz-Signature", "x-amz-signature"])
def test_a_presigned_address_is_refused_in_words(name: str) -> None:
    with pytest.raises(NotAllowed, match="presigned addresses are not taken here"):
        gate().authenticate({}, {name: "0" * 64, "X-Amz-Algorithm": "AWS4-HMAC-SHA256"}, NOW_S)


def test_n1_a_known_key_needs_no_signature_beside_it() -> None:
    headers = {"authorization": "AWS4-HMAC-SHA256 stale", "x-api-key": SECRET}
    assert let_in(gate(), headers) == let_in(gate(), {"x-api-key": SECRET})
    assert let_in(gate(), {**headers, "x-api-key": "AIza-own"}).google_key == "AIza-own"


@pytest.mark.parametrize(
    "headers",
    [
        {"authorization": "AWS4-HMAC-SHA256 nonsense"},
        {"authorization": "AWS AKID:signature"},
        {"authorization": "Bearer of-anything"},
        {},
    ],
)
def test_an_open_gate_takes_every_proof_for_nobody_in_particular(headers: dict[str, str]) -> None:
    assert let_in(gate(open_to_all=True), headers) == Caller(scope="everybody")


def test_an_open_gate_takes_every_signature() -> None:
    door = gate(open_to_all=True)
    assert prove(door, secret="made up") == Caller(scope="everybody")
    assert prove(door, b"another body") == Caller(scope="everybody")
    assert let_in(door, {}, {"X-Amz-Signature": "0"}) == Caller(scope="everybody")


def test_all_keys_are_compared_whichever_fits(monkeypatch: pytest.MonkeyPatch) -> None:
    compared = []

    def compare(ours: Any, theirs: Any) -> bool:
        compared.append(ours)
        return bool(ours == theirs)

    monkeypatch.setattr("dragoman.gateway.auth.authenticator.hmac.compare_digest", compare)
    let_in(gate(), {"x-api-key": KEYS[0]})
    prove(gate(), secret=KEYS[0])
    assert len(compared) == 2 * len(KEYS)


def test_q6_the_role_is_the_keys_however_it_is_shown() -> None:
    for keys in (KEYS, (OTHER,)):  # an admin's key need not be listed twice
        door = gate(keys=keys, admin_keys=(SECRET,))
        for admin in (let_in(door, {"x-api-key": SECRET}), prove(door)):
            assert admin.admin
            door.check_admin(admin)
        other = let_in(door, {"x-api-key": OTHER})
        assert not other.admin
        with pytest.raises(NotAllowed, match="admin_keys") as refusal:
            door.check_admin(other)
        assert refusal.value.kind == "permission"


def test_q6_a_role_changes_nothing_of_what_a_key_keeps() -> None:
    assert prove(gate(admin_keys=(SECRET,))).scope == prove(gate()).scope


@pytest.mark.parametrize("headers", [{}, {"x-api-key": "AIza-own"}])
def test_q6_neither_a_google_key_nor_an_open_door_makes_an_admin(headers: dict[str, str]) -> None:
    door = gate(open_to_all=True, admin_keys=(SECRET,))
    caller = let_in(door, headers)
    assert not caller.admin
    with pytest.raises(NotAllowed, match="with the admin role is needed") as refusal:
        door.check_admin(caller)
    assert refusal.value.kind == "authentication"
    door.check_admin(let_in(door, {"x-api-key": SECRET}))


def test_no_key_is_kept() -> None:
    door = gate(admin_keys=(SECRET,))
    seen = repr(vars(door)) + repr([repr(part) for part in vars(door).values()])
    assert not any(key in seen for key in KEYS)


@pytest.mark.parametrize(
    "headers",
    [
        {"content-type": "application/json"},
        {"content-type": "Application/JSON; charset=utf-8"},
        {"content-type": "application/vnd.api+json"},
        {"content-type": "application/x-amz-json-1.0"},
        {"content-type": "application/x-amz-json-1.1"},
        {"content-length": "0"},  # Amazon's control calls
        {"authorization": "AWS4-HMAC-SHA256 x"},  # boto3's invoke_model leaves the type out
        {"authorization": "Bearer x", "content-length": "100"},
        {"x-api-key": "x"},
        {"content-type": "application/octet-stream", "authorization": "AWS4-HMAC-SHA256 x"},  # aws-sdk-js's
    ],
)
def test_content_types_that_are_taken(headers: dict[str, str]) -> None:
    gate().check_content_type(headers)


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"content-length": "2"},
        {"content-type": ""},
        {"content-type": "text/plain"},
        {"content-type": "text/plain", "content-length": "0"},
        {"content-type": "text/plain; application/json", "authorization": "Bearer x"},
        {"content-type": "application/x-www-form-urlencoded", "authorization": "AWS4-HMAC-SHA256 x"},
        {"content-type": "multipart/form-data", "x-api-key": "x"},
        {"content-type": "application/octet-stream"},
        {"cookie": "a=b"},
    ],
)
def test_q8_what_a_web_page_can_send_unasked_is_refused(headers: dict[str, str]) -> None:
    with pytest.raises(InvalidRequest, match="must be application/json"):
        gate().check_content_type(headers)


def test_q5_a_key_is_compared_whole() -> None:
    """CVE-2026-35030: whoever shared the first twenty characters of a token was taken for its owner."""
    long = "dgm-" + "a" * 60
    door = gate(keys=(f"{long}1", f"{long}2"))
    first, second = (let_in(door, {"x-api-key": f"{long}{end}"}) for end in "12")
    assert first.scope != second.scope
    assert first.key_hash != second.key_hash
    for close in (long, f"{long}3", f"{long}1 ", f"{long}12", f"{long}1".upper(), ""):
        with pytest.raises(NotAllowed):
            let_in(door, {"x-api-key": close})


@pytest.mark.parametrize(
    ("host", "name"),
    [
        ("localhost", "localhost"),
        ("LocalHost:8377", "localhost"),
        ("127.0.0.1:", "127.0.0.1"),
        ("[::1]:8377", "::1"),
        ("[::1]", "::1"),
        ("a-b.c_d.example:1", "a-b.c_d.example"),
    ],
)
def test_q8_a_host_is_a_name_or_an_address_and_maybe_a_port(host: str, name: str) -> None:
    assert Authenticator((), open_to_all=True, allowed_hosts=(name,)).is_known_host({"host": host})


@pytest.mark.parametrize(
    "host",
    ["", "[::1].x", "[::1", "::1", "localhost:x", "localhost:1:1", "localhost/", "x@localhost", "localhost,x",
     "localhost ", "localhost\\x", "localhost#", "localhost?", "localhost:123456", "lоcalhost"],
)  # fmt: skip
def test_q8_anything_else_is_no_host(host: str) -> None:
    assert not gate().is_known_host({"host": host})


def test_q6_the_hash_of_a_key_is_not_enough_to_make_a_pass() -> None:
    """It may stand in the settings of a profile, where more people read it than the key."""
    door = gate(admin_keys=(SECRET,))
    admin = let_in(door, {"x-api-key": SECRET})
    assert door.admin_by_cookie_secret(admin.key_hash) is None
    assert admin.key_hash not in door.admin_cookie_secrets
    assert door.admin_by_cookie_secret(door.cookie_secret_of(admin)) == admin
    other = let_in(door, {"x-api-key": OTHER})
    assert door.cookie_secret_of(other) not in door.admin_cookie_secrets
    assert door.admin_by_cookie_secret(door.cookie_secret_of(other)) is None
    assert door.cookie_secret_of(Caller()) == ""
    assert door.admin_by_cookie_secret("") is None
