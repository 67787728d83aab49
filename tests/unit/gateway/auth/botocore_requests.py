"""Requests signed by botocore, as they come over the wire; the code under test is not used."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from unittest.mock import patch
from urllib.parse import urlsplit

from botocore.auth import S3SigV4Auth, SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.compat import HTTPHeaders
from botocore.credentials import Credentials

from dragoman.gateway.auth.sigv4 import RawHead

SECRET = "dgm-test-key-of-sufficient-length"
NOW = datetime(2026, 11, 15, 8, 0, tzinfo=UTC)
NOW_S = NOW.timestamp()
URL = "http://127.0.0.1:8080/v1/messages"


def signed(
    method: str = "POST",
    url: str = URL,
    headers: Iterable[tuple[str, str]] = (),
    body: bytes = b"{}",
    *,
    secret: str = SECRET,
    access_key: str = "AKIDEXAMPLE",
    service: str = "bedrock",
    region: str = "us-east-1",
    token: str | None = None,
    at: datetime = NOW,
) -> RawHead:
    """The head of a request that botocore signed."""
    given = HTTPHeaders()
    for name, value in headers:
        given[name] = value  # adds; the old one stays
    request = AWSRequest(method, url, given, data=body)
    signer = S3SigV4Auth if service == "s3" else SigV4Auth
    with patch("botocore.auth.get_current_datetime", return_value=at):
        signer(Credentials(access_key, secret, token), service, region).add_auth(request)
    parts = urlsplit(url)
    wire = [
        (name.lower().encode("latin-1"), value.encode("latin-1")) for name, value in request.headers.items()
    ]
    if not any(name == b"host" for name, _ in wire):
        wire.append((b"host", parts.netloc.encode()))
    return RawHead(method, (parts.path or "/").encode(), parts.query.encode(), wire)


def headers_of(head: RawHead) -> dict[str, str]:
    return {name.decode("latin-1"): value.decode("latin-1") for name, value in head.headers}
