"""AWS Signature Version 4 (AWS4-HMAC-SHA256), the verifying side: parse the claim, rebuild and sign the text.

Pure functions; clock and keys are arguments. The canonical request consists of method, path, query, the
signed headers, an empty line, their names, and the hash of the body:
https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_sigv-create-signed-request.html
"""

from __future__ import annotations

import hmac
import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from hashlib import sha256
from urllib.parse import quote, unquote_to_bytes

import msgspec

from dragoman.errors import NotAllowed

ALGORITHM = "AWS4-HMAC-SHA256"
MAX_SKEW_S = 15 * 60
_SCOPE_END = "aws4_request"
_UNSIGNED_PAYLOAD = "UNSIGNED-PAYLOAD"
_TIME_FORMAT = "%Y%m%dT%H%M%SZ"
_UNRESERVED = "-_.~"
#: Services that sign the path as sent; all others percent-encode it a second time.
_SINGLE_ENCODED_SERVICES = frozenset({"s3"})
#: aws-sdk-js signs the HTTP/2 pseudo-header instead of Host.
_HOST_HEADERS = ("host", ":authority")
_CREDENTIAL = re.compile(r".+/([0-9]{8})/([^/]*)/([^/]+)/" + _SCOPE_END)
_SIGNATURE = re.compile(r"[0-9a-f]{64}")
_BASIC_TIME = re.compile(r"[0-9]{8}T[0-9]{6}Z")


class RawHead(msgspec.Struct, frozen=True):
    """A request head as received: the path percent-encoded, repeated headers repeated."""

    method: str
    path: bytes
    query: bytes
    headers: Sequence[tuple[bytes, bytes]]


class SigV4Claim(msgspec.Struct, frozen=True):
    """The parsed Authorization header of a signed request; its signature is not verified yet.

    The access key id is not part of it, because every gateway key is tried.
    """

    time: str
    region: str
    service: str
    signed_headers: tuple[str, ...]
    payload_hash: str  # x-amz-content-sha256, or empty
    signature: str

    @property
    def day(self) -> str:
        return self.time[:8]


def is_signed(headers: Mapping[str, str]) -> bool:
    return headers.get("authorization", "").startswith("AWS")


def read_claim(headers: Mapping[str, str], now_s: float) -> SigV4Claim:
    """Parse the headers of a signed request; raise NotAllowed for everything that is wrong without the body.

    The time of the signature must be within MAX_SKEW_S of `now_s`.
    """
    algorithm, _, rest = headers["authorization"].partition(" ")
    if algorithm != ALGORITHM:
        raise NotAllowed(f"of Amazon's signatures only {ALGORITHM} is understood here")
    fields = {name: value for name, _, value in (pair.strip().partition("=") for pair in rest.split(","))}
    credential = _CREDENTIAL.fullmatch(fields.get("Credential", ""))
    signature = fields.get("Signature", "")
    signed = tuple(fields.get("SignedHeaders", "").lower().split(";"))
    if credential is None or _SIGNATURE.fullmatch(signature) is None:
        raise NotAllowed(
            f"the Authorization header must have a Credential=NAME/DAY/REGION/SERVICE/{_SCOPE_END}, "
            "SignedHeaders and a Signature"
        )
    if not any(name in signed for name in _HOST_HEADERS):
        raise NotAllowed("the host must be one of the signed headers")
    time = _signing_time(headers, now_s)
    if credential[1] != time[:8]:
        raise NotAllowed("the day of the credential is not the day of the signature")
    return SigV4Claim(
        time=time,
        region=credential[2],
        service=credential[3],
        signed_headers=signed,
        payload_hash=_declared_payload(headers),
        signature=signature,
    )


def string_to_sign(claim: SigV4Claim, head: RawHead, body: bytes) -> bytes:
    """Return the "string to sign" of a request; raise NotAllowed if body or headers differ from the claim."""
    scope = "/".join((claim.day, claim.region, claim.service, _SCOPE_END))
    request = sha256(_canonical_request(claim, head, body)).hexdigest()
    return "\n".join((ALGORITHM, claim.time, scope, request)).encode()


def signing_root(secret: str) -> hmac.HMAC:
    """Return the keyed HMAC from which `sign` derives signing keys, so that the secret need not be stored."""
    return hmac.new(b"AWS4" + secret.encode("utf-8", "replace"), digestmod=sha256)


def sign(root: hmac.HMAC, claim: SigV4Claim, text: bytes) -> str:
    """Return the hex signature of `text` with the signing key of the claim's day, region and service."""
    state = root.copy()
    state.update(claim.day.encode())
    key = state.digest()
    for step in (claim.region, claim.service, _SCOPE_END):
        key = hmac.digest(key, step.encode(), "sha256")
    return hmac.digest(key, text, "sha256").hex()


def _parse_http_date(text: str) -> datetime:
    from email.utils import parsedate_to_datetime  # a large module for a date form that is hardly used

    return parsedate_to_datetime(text)


def _signing_time(headers: Mapping[str, str], now_s: float) -> str:
    text = headers.get("x-amz-date") or headers.get("date", "")
    try:
        moment = datetime.fromisoformat(text) if _BASIC_TIME.fullmatch(text) else _parse_http_date(text)
        moment = moment.astimezone(UTC) if moment.tzinfo else moment.replace(tzinfo=UTC)
    except (ValueError, OverflowError):
        raise NotAllowed("a signed request needs its time: x-amz-date as 20260131T235959Z") from None
    if abs(moment.timestamp() - now_s) > MAX_SKEW_S:
        now = datetime.fromtimestamp(now_s, UTC).strftime(_TIME_FORMAT)
        signed = moment.strftime(_TIME_FORMAT)
        why = f"the request was signed at {signed}, and it is {now} here: more than 15 minutes apart"
        raise NotAllowed(why)
    return moment.strftime(_TIME_FORMAT)


def _declared_payload(headers: Mapping[str, str]) -> str:
    payload_hash = headers.get("x-amz-content-sha256", "")
    if payload_hash not in ("", _UNSIGNED_PAYLOAD) and _SIGNATURE.fullmatch(payload_hash) is None:
        raise NotAllowed(
            f"x-amz-content-sha256 must be a hash or {_UNSIGNED_PAYLOAD}, not {payload_hash[:40]!r}"
        )
    return payload_hash


def _canonical_request(claim: SigV4Claim, head: RawHead, body: bytes) -> bytes:
    payload = _UNSIGNED_PAYLOAD if claim.payload_hash == _UNSIGNED_PAYLOAD else sha256(body).hexdigest()
    if claim.payload_hash not in ("", payload):
        raise NotAllowed("the body is not the one whose hash is in x-amz-content-sha256")
    lines = (
        head.method,
        _canonical_path(head.path)
        if claim.service not in _SINGLE_ENCODED_SERVICES
        else head.path.decode("latin-1"),
        _canonical_query(head.query),
        *_canonical_headers(claim, head),
        "",
        ";".join(claim.signed_headers),
        payload,
    )
    return "\n".join(lines).encode()


def _canonical_path(path: bytes) -> str:
    """Remove empty, `.` and `..` segments, and percent-encode the result a second time."""
    segments: list[bytes] = []
    for segment in path.split(b"/"):
        if segment == b"..":
            del segments[-1:]
        elif segment not in (b"", b"."):
            segments.append(segment)
    end = b"/" if segments and path.endswith(b"/") else b""
    return quote(b"/" + b"/".join(segments) + end, safe="/" + _UNRESERVED)


def _canonical_query(query: bytes) -> str:
    pairs = [pair.partition(b"=") for pair in query.split(b"&") if pair]
    return "&".join(
        f"{name}={value}" for name, value in sorted((_encode(n), _encode(v)) for n, _, v in pairs)
    )


def _encode(text: bytes) -> str:
    return quote(unquote_to_bytes(text), safe=_UNRESERVED)


def _canonical_headers(claim: SigV4Claim, head: RawHead) -> list[str]:
    """Return the signed headers, white space folded and repeated headers joined by commas."""
    values: dict[str, list[bytes]] = {}
    for raw, value in head.headers:
        values.setdefault(raw.decode("latin-1").lower(), []).append(b" ".join(value.split()))
    lines = []
    for name in claim.signed_headers:
        found = values.get("host" if name in _HOST_HEADERS else name)
        if not found:
            raise NotAllowed(f"the header {name[:40]!r} was signed and did not arrive")
        lines.append(f"{name}:{b','.join(found).decode('latin-1')}")
    return lines
