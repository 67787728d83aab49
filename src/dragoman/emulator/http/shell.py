"""Shared by the emulator's servers: a request as a `Question`, and the header fields of an `Answer`."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from urllib.parse import parse_qs

from dragoman.config import LOOPBACK_NAMES
from dragoman.emulator.question import HttpRequest
from dragoman.emulator.wire import HttpResponse

_GOOGLE_HOSTS = ".googleapis.com"  # programs that reach the emulator through a proxy keep Google's name


def make_request(
    verb: str, path: str, query: str, headers: Iterable[tuple[str, str]], body: bytes
) -> HttpRequest:
    """`path` is percent-decoded. The values of a repeated header are joined with commas (RFC 9110 section 5.3)."""
    fields: dict[str, str] = {}
    for name, value in headers:
        name = name.lower()
        fields[name] = f"{fields[name]}, {value}" if name in fields else value
    asked = {name: values[-1] for name, values in parse_qs(query, keep_blank_values=True).items()}
    return HttpRequest(
        method=verb,
        path=path,
        alt=asked.get("alt", ""),
        key=fields.get("x-goog-api-key", "") or asked.get("key", ""),
        body=body,
        headers=fields,
        query=asked,
        now=datetime.now(UTC).isoformat().replace("+00:00", "Z"),
    )


def is_cross_site(question: HttpRequest) -> bool:
    """Whether a web page sent this: from another origin, or through a name made to point here (DNS rebinding)."""
    headers = question.headers
    host = headers.get("host", "localhost").lower()
    name = host[1:].partition("]")[0] if host.startswith("[") else host.partition(":")[0]
    known = name in LOOPBACK_NAMES or name.endswith(_GOOGLE_HOSTS)
    return not known or "origin" in headers or headers.get("sec-fetch-site", "none") != "none"


def base_url_of(host: str, port: int) -> str:
    """The base URL of a server."""
    name = f"[{host}]" if ":" in host else host
    return f"http://{name}:{port}"


def header_fields(answer: HttpResponse) -> list[tuple[str, str]]:
    """The header fields of an answer. A stream gets no content-length; one that the answer sets itself is kept."""
    fields = [("content-type", answer.content_type), *answer.headers]
    if not answer.streamed and all(name.lower() != "content-length" for name, _ in answer.headers):
        fields.append(("content-length", str(answer.content_length)))
    return fields
