"""Amazon's signatures: what their own suite publishes, what botocore signs, and everything that is refused."""

from __future__ import annotations

import time
from contextlib import suppress
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dragoman.errors import NotAllowed
from dragoman.gateway.auth.sigv4 import RawHead, is_signed, read_claim, sign, signing_root, string_to_sign
from tests.unit.gateway.auth.botocore_requests import NOW, NOW_S, SECRET, headers_of, signed

SUITE_SECRET = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"
SUITE_S = datetime(2015, 8, 30, 12, 36, tzinfo=UTC).timestamp()
UNRESERVED = "-._~0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
EMPTY_HASH = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
BEDROCK_ARN = "/model/arn%3Aaws%3Abedrock%3Aus-east-1%3A1%3Ainference-profile%2Fus.x-v1%3A0/converse"


def fits(head: RawHead, body: bytes = b"{}", *, secret: str = SECRET, now_s: float = NOW_S) -> bool:
    claim = read_claim(headers_of(head), now_s)
    return sign(signing_root(secret), claim, string_to_sign(claim, head, body)) == claim.signature


def changed(head: RawHead, name: str, value: str | None) -> RawHead:
    """The same head with another header, or without one."""
    kept = [pair for pair in head.headers if pair[0] != name.encode()]
    more = [] if value is None else [(name.encode(), value.encode("latin-1"))]
    return msgspec.structs.replace(head, headers=[*kept, *more])


def authorization(head: RawHead, old: str, new: str) -> RawHead:
    text = headers_of(head)["authorization"]
    assert old in text
    return changed(head, "authorization", text.replace(old, new))


# The published suite

SUITE = {
    "get-vanilla": ("GET /", {}, b"", "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31"),
    "post-vanilla": ("POST /", {}, b"", "5da7c1a2acd57cee7505fc6676e4e544621c30862966e37dddb68e92efbe5d6b"),
    "get-vanilla-query-order-key": (
        "GET /?Param1=value2&Param1=Value1",
        {},
        b"",
        "eedbc4e291e521cf13422ffca22be7d2eb8146eecf653089df300a15b2382bd1",
    ),
    "get-vanilla-query-order-key-case": (
        "GET /?Param2=value2&Param1=value1",
        {},
        b"",
        "b97d918cfa904a5beff61c982a1b6f458b799221646efd99d3219ec94cdf2500",
    ),
    "get-vanilla-query-order-value": (
        "GET /?Param1=value2&Param1=value1",
        {},
        b"",
        "5772eed61e12b33fae39ee5e7012498b51d56abc0abb7c60486157bd471c4694",
    ),
    "get-vanilla-query-unreserved": (
        f"GET /?{UNRESERVED}={UNRESERVED}",
        {},
        b"",
        "9c3e54bfcdf0b19771a7f523ee5669cdf59bc7cc0884027167c21bb143a40197",
    ),
    "get-unreserved": (
        f"GET /{UNRESERVED}",
        {},
        b"",
        "07ef7494c76fa4850883e2b006601f940f8a34d404d0cfa977f52a65bbf5f24f",
    ),
    "get-relative": (
        "GET /example/..",
        {},
        b"",
        "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31",
    ),
    "get-space": (
        "GET /example space/",
        {},
        b"",
        "652487583200325589f1fba4c7e578f72c47cb61beeca81406b39ddec1366741",
    ),
    "get-header-key-duplicate": (
        "GET /",
        {"my-header1": ["value2", "value2", "value1"]},
        b"",
        "c9d5ea9f3f72853aea855b47ea873832890dbdd183b4468f858259531a5138ea",
    ),
    "get-header-value-order": (
        "GET /",
        {"my-header1": ["value4", "value1", "value3", "value2"]},
        b"",
        "08c7e5a9acfcfeb3ab6b2185e75ce8b1deb5e634ec47601a50643f830c755c01",
    ),
    "get-header-value-trim": (
        "GET /",
        {"my-header1": [" value1"], "my-header2": [' "a   b   c"']},
        b"",
        "acc3ed3afb60bb290fc8d2dd0098b9911fcaa05412b367055dee359757a9c736",
    ),
    "post-x-www-form-urlencoded": (
        "POST /",
        {"content-type": ["application/x-www-form-urlencoded"]},
        b"Param1=value1",
        "ff11897932ad3f4e8b18135d722051e5ac45fc38421b1da7b9d196a0fe09473a",
    ),
}


@pytest.mark.parametrize("name", SUITE)
def test_amazons_published_suite(name: str) -> None:
    line, more, body, signature = SUITE[name]
    method, _, target = line.partition(" ")
    path, _, query = target.partition("?")
    names = sorted(["host", "x-amz-date", *more])
    pairs = [("host", "example.amazonaws.com"), ("x-amz-date", "20150830T123600Z")]
    pairs += [(header, value) for header, values in more.items() for value in values]
    scope = "20150830/us-east-1/service/aws4_request"
    pairs.append(
        (
            "authorization",
            f"AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/{scope}, SignedHeaders={';'.join(names)}, Signature={signature}",
        )
    )
    head = RawHead(method, path.encode(), query.encode(), [(n.encode(), v.encode()) for n, v in pairs])
    assert fits(head, body, secret=SUITE_SECRET, now_s=SUITE_S)
    assert not fits(head, body, secret=SUITE_SECRET[:-1], now_s=SUITE_S)


# What botocore signs

SHAPES: dict[str, dict[str, Any]] = {
    "Bedrock with an ARN": {"url": "http://127.0.0.1:8080" + BEDROCK_ARN},
    "AnthropicBedrock leaves the colon": {"url": "http://127.0.0.1:8080/model/a.b-v1:0/invoke"},
    "doubled slashes and dots": {"url": "http://h/a//b/./c/../d//"},
    "above the root": {"url": "http://h/../../a"},
    "no path": {"url": "http://h:9000"},
    "a query out of order": {"url": "http://h/?b=2&a=1&b=1&B=0&empty=&alone"},
    "a query of odd characters": {"url": "http://h/?arn=arn%3Aaws%3Ax%2Fy%20z&%C3%A4=%E2%82%AC~"},
    "Amazon Q over awsJson": {
        "url": "http://h/",
        "headers": [
            ("Content-Type", "application/x-amz-json-1.0"),
            ("X-Amz-Target", "AmazonQDeveloperStreamingService.SendMessage"),
        ],
        "service": "q",
    },
    "a session token": {"token": "AQoDYXdzEPT//////////wEXAMPLE=="},
    "a GET without a body": {"method": "GET", "url": "http://h/ListAvailableModels?origin=IDE", "body": b""},
    "an empty body": {"body": b""},
    "a body of bytes": {"body": bytes(range(256)) * 40},
    "white space in values": {"headers": [("X-A", "  a \t  b  "), ("X-B", "")]},
    "repeated headers": {"headers": [("X-A", "2"), ("x-a", " 1  1 "), ("X-A", "2")]},
    "a header beyond ASCII": {"headers": [("X-A", "zwölf")]},
    "a Date header": {"headers": [("Date", "any")]},
    "an unsigned body": {"headers": [("X-Amz-Content-SHA256", "UNSIGNED-PAYLOAD")]},
    "a declared hash": {"headers": [("X-Amz-Content-SHA256", EMPTY_HASH)], "body": b""},
    "a name with slashes": {"access_key": "team/alice"},
    "another region": {"region": "cn-north-1"},
    "s3, whose path is not encoded again": {"url": "http://h/a%20b//c/../%2F", "service": "s3"},
}


@pytest.mark.parametrize("shape", SHAPES)
def test_what_botocore_signs_fits_with_the_right_secret_only(shape: str) -> None:
    head, body = signed(**SHAPES[shape]), SHAPES[shape].get("body", b"{}")
    assert is_signed(headers_of(head))
    assert fits(head, body)
    assert not fits(head, body, secret=SECRET + "x")
    assert not fits(head, body, secret="")


def test_over_http2_the_host_is_signed_under_its_other_name() -> None:
    """A signature that smithy made, which aws-sdk-js uses."""
    pairs = {
        "host": "127.0.0.1:8080",
        "x-amz-date": "20261115T080000Z",
        "authorization": "AWS4-HMAC-SHA256 Credential=A/20261115/us-east-1/bedrock/aws4_request, "
        "SignedHeaders=:authority;x-amz-date, "
        "Signature=51c441f0bb8a6c92592b6351670e83622746af000d1de9e04676f5a44af21787",
    }
    head = RawHead(
        "POST", b"/v1/messages", b"", [(name.encode(), value.encode()) for name, value in pairs.items()]
    )
    assert fits(head)
    assert not fits(changed(head, "host", "127.0.0.1:8081"))


def test_an_unsigned_body_may_be_any_and_a_signed_one_may_not() -> None:
    unsigned = signed(headers=[("X-Amz-Content-SHA256", "UNSIGNED-PAYLOAD")])
    assert fits(unsigned, b"something else")
    assert not fits(signed(), b"something else")
    with pytest.raises(NotAllowed, match="not the one whose hash"):
        fits(signed(headers=[("X-Amz-Content-SHA256", EMPTY_HASH)]), b"something else")


def test_a_session_token_may_be_added_after_signing() -> None:
    assert fits(changed(signed(), "x-amz-security-token", "later"))
    assert not fits(changed(signed(token="a"), "x-amz-security-token", "b"))


# Refused before the body is read

SHAPELESS = {
    "another algorithm": (("AWS4-HMAC-SHA256", "AWS4-ECDSA-P256-SHA256"), "only AWS4-HMAC-SHA256"),
    "version 2": (("AWS4-HMAC-SHA256", "AWS"), "only AWS4-HMAC-SHA256"),
    "no credential": (("Credential=", "Nothing="), "must have a Credential"),
    "another end of the scope": (("/aws4_request", "/aws5_request"), "must have a Credential"),
    "a short scope": (("/us-east-1/", "/"), "must have a Credential"),
    "no service": (("/bedrock/", "//"), "must have a Credential"),
    "a day that is none": (("/20261115/", "/2026111/"), "must have a Credential"),
    "no signature": (("Signature=", "Nothing="), "and a Signature"),
    "a signature in capitals": (("Signature=", "Signature=A"), "and a Signature"),
    "no signed headers": (("SignedHeaders=", "Nothing="), "host must be one"),
    "the host not signed": (("host;", ""), "host must be one"),
    "another day": (("/20261115/", "/20261114/"), "day of the credential"),
}


@pytest.mark.parametrize("case", SHAPELESS)
def test_a_claim_without_its_shape_says_what_is_missing(case: str) -> None:
    (old, new), words = SHAPELESS[case]
    with pytest.raises(NotAllowed, match=words) as refusal:
        fits(authorization(signed(), old, new))
    assert refusal.value.kind == "authentication"


@pytest.mark.parametrize("text", ["AWS4-HMAC-SHA256", "AWS4-HMAC-SHA256 ", "AWS4-HMAC-SHA256 ,=,=", "AWS"])
def test_a_claim_of_nothing_is_refused(text: str) -> None:
    with pytest.raises(NotAllowed):
        fits(changed(signed(), "authorization", text))


@pytest.mark.parametrize(
    "text",
    ["", "yesterday", "20261115T0800Z", "20261315T080000Z", "2026-11-15T08:00:00Z", "99999999T999999Z"],
)
def test_a_signature_without_a_time_is_refused(text: str) -> None:
    with pytest.raises(NotAllowed, match="needs its time"):
        fits(changed(signed(), "x-amz-date", text))
    with pytest.raises(NotAllowed, match="needs its time"):
        fits(changed(changed(signed(), "x-amz-date", None), "date", text))


@pytest.mark.parametrize("minutes", [-15, -14, 0, 14, 15])
def test_clocks_may_differ_by_a_quarter_of_an_hour(minutes: int) -> None:
    assert fits(signed(at=NOW + timedelta(minutes=minutes)))


@pytest.mark.parametrize("seconds", [-901, 901, -86_400, 10**8])
def test_clocks_that_differ_by_more_are_told_both_times(seconds: int) -> None:
    at = NOW + timedelta(seconds=seconds)
    with pytest.raises(NotAllowed, match=rf"signed at {at:%Y%m%dT%H%M%SZ}, and it is 20261115T080000Z here"):
        fits(signed(at=at))


@pytest.mark.parametrize("zone", ["UTC", "Asia/Tokyo"])
def test_a_date_of_botocores_is_read_alike_everywhere(zone: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """It names no zone (-0000), and means UTC."""
    with monkeypatch.context() as patched:
        patched.setenv("TZ", zone)
        time.tzset()
        assert fits(signed(headers=[("Date", "any")]))
    time.tzset()


def test_a_date_is_a_moment_wherever_it_was_written() -> None:
    head = signed(headers=[("Date", "any")])
    there = NOW.astimezone(timezone(timedelta(hours=5))).strftime("%a, %d %b %Y %H:%M:%S %z")
    claim = read_claim(headers_of(changed(head, "date", there)), NOW_S)
    assert claim.time == "20261115T080000Z"


@pytest.mark.parametrize("declared", ["STREAMING-AWS4-HMAC-SHA256-PAYLOAD", "nonsense", EMPTY_HASH.upper()])
def test_a_body_that_is_signed_in_another_way_is_refused(declared: str) -> None:
    with pytest.raises(NotAllowed, match="must be a hash or UNSIGNED-PAYLOAD"):
        fits(changed(signed(), "x-amz-content-sha256", declared))


def test_a_signed_header_that_a_proxy_took_away_is_named() -> None:
    with pytest.raises(NotAllowed, match="'x-amz-target' was signed and did not arrive"):
        fits(changed(signed(headers=[("X-Amz-Target", "A.B")]), "x-amz-target", None))


def test_a_refusal_never_repeats_what_was_sent_as_proof() -> None:
    for case, ((old, new), _) in SHAPELESS.items():
        head = authorization(signed(token="the-session-token"), old, new)
        with pytest.raises(NotAllowed) as refusal:
            fits(head)
        proof = headers_of(head)["authorization"].rpartition("=")[2]
        assert proof not in str(refusal.value), case
        assert "the-session-token" not in str(refusal.value), case


# Always

SEGMENTS = st.text("abzAZ09-._~!$&'()*+,;=:@ ", max_size=6)
ENCODED = st.text(max_size=4).map(
    lambda text: "".join(f"%{byte:02X}" for byte in text.encode("utf-8", "replace"))
)
PATHS = st.lists(SEGMENTS | ENCODED, max_size=5).map(lambda parts: "/" + "/".join(parts))
CANONICAL = st.text("abAB09-._~", max_size=5) | ENCODED.filter(lambda text: not _unreserved(text))
QUERIES = st.lists(st.tuples(CANONICAL, CANONICAL), max_size=4).map(
    lambda pairs: "&".join(f"{name}={value}" for name, value in pairs if name)
)
NAMES = st.sampled_from(["x-amz-target", "content-type", "x-a", "x-b", "accept", "amz-sdk-request"])
VALUES = st.text("aZ09 \t,;=\"'äß", max_size=10)
REQUESTS = st.fixed_dictionaries(
    {
        "method": st.sampled_from(["GET", "POST", "PUT", "DELETE", "HEAD"]),
        "url": st.builds(
            lambda host, path, query: f"http://{host}{path}" + (f"?{query}" if query else ""),
            st.sampled_from(["127.0.0.1:8080", "localhost", "[::1]:1"]),
            PATHS,
            QUERIES,
        ),
        "headers": st.lists(st.tuples(NAMES, VALUES), max_size=5),
        "body": st.binary(max_size=40),
        "service": st.sampled_from(["bedrock", "q", "codewhisperer"]),
        "region": st.sampled_from(["us-east-1", "eu-central-1", ""]),
        "token": st.none() | st.just("session-token"),
        "access_key": st.text("AKIDxyz0189/", min_size=1, max_size=12),
    }
)


def _unreserved(text: str) -> bool:
    """Whether something is encoded that need not be: the signed form of that is another."""
    return any(chr(int(text[at + 1 : at + 3], 16)) in UNRESERVED for at in range(0, len(text), 3))


@settings(max_examples=300, deadline=None)
@given(request=REQUESTS, secret=st.text(min_size=1, max_size=40).filter(lambda text: text.isprintable()))
def test_whatever_botocore_signs_is_believed_and_nothing_else(request: dict[str, Any], secret: str) -> None:
    head = signed(**request, secret=secret)
    assert fits(head, request["body"], secret=secret)
    assert not fits(head, request["body"], secret=secret + "x")


@settings(max_examples=300, deadline=None)
@given(request=REQUESTS, data=st.data())
def test_one_changed_byte_of_what_was_signed_is_refused(request: dict[str, Any], data: st.DataObject) -> None:
    head, body = signed(**request), request["body"]
    signed_names = (
        headers_of(head)["authorization"].partition("SignedHeaders=")[2].partition(",")[0].split(";")
    )
    spots = [("signature", 0), ("method", 0)]
    spots += [("body", at) for at in range(len(body))]
    spots += [("query", at) for at, byte in enumerate(head.query) if chr(byte) in "abAB09"]
    if b".." not in head.path.split(b"/"):  # it takes a name away before the path is signed
        spots += [("path", at) for at, byte in enumerate(head.path) if chr(byte) in "abzAZ"]
    spots += [
        (f"header {number}", at)
        for number, (name, value) in enumerate(head.headers)
        if name.decode() in signed_names
        for at, byte in enumerate(value)
        if chr(byte).isalnum()
    ]
    where, at = data.draw(st.sampled_from(spots))
    with suppress(NotAllowed):  # a date or a scope that lost its shape
        assert not fits(*_spoil(head, body, where, at))


def _spoil(head: RawHead, body: bytes, where: str, at: int) -> tuple[RawHead, bytes]:
    def other(raw: bytes) -> bytes:
        return raw[:at] + (b"y" if raw[at : at + 1] != b"y" else b"x") + raw[at + 1 :]

    match where.split():
        case ["body"]:
            return head, other(body)
        case ["method"]:
            return msgspec.structs.replace(head, method="PATCH"), body
        case ["signature"]:
            text = headers_of(head)["authorization"]
            return changed(head, "authorization", text[:-1] + ("0" if text[-1] != "0" else "1")), body
        case ["path" | "query" as part]:
            return msgspec.structs.replace(head, **{part: other(getattr(head, part))}), body
        case [_, number]:
            pairs = list(head.headers)
            name, value = pairs[int(number)]
            pairs[int(number)] = (name, other(value))
            return msgspec.structs.replace(head, headers=pairs), body
        case _:
            raise AssertionError(where)
