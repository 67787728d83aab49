"""The static files of the dashboard, with entity tags and security headers."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from hashlib import sha256
from pathlib import Path

import msgspec

_STATIC_FOLDER = Path(__file__).with_name("static")
INDEX_FILE = "index.html"
_CONTENT_TYPES = {
    "html": "text/html; charset=utf-8",
    "css": "text/css; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "svg": "image/svg+xml",
}
#: Load only our own files, allow no inline script or style and no framing, and no string as markup (Trusted
#: Types).
_CONTENT_SECURITY_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "form-action 'self'; frame-ancestors 'none'; base-uri 'none'; "
    "require-trusted-types-for 'script'; trusted-types 'none'"
)
SAFE_HEADERS: tuple[tuple[str, str], ...] = (
    ("content-security-policy", _CONTENT_SECURITY_POLICY),
    ("x-content-type-options", "nosniff"),
    ("x-frame-options", "DENY"),
    ("referrer-policy", "no-referrer"),
    ("cross-origin-opener-policy", "same-origin"),
    ("cross-origin-resource-policy", "same-origin"),
    ("permissions-policy", "camera=(), microphone=(), geolocation=()"),
)


class StaticFile(msgspec.Struct, frozen=True):
    content_type: str
    tag: str
    data: bytes


@cache
def load_static_files() -> Mapping[str, StaticFile]:
    """Return the files by name; only these can be requested."""
    return {name: _read(name) for name in list_static_names()}


def list_static_names() -> list[str]:
    """Return the file names without loading the files, which a gateway without dashboard users never needs."""
    return sorted(path.name for path in _STATIC_FOLDER.iterdir() if path.suffix[1:] in _CONTENT_TYPES)


def _read(name: str) -> StaticFile:
    path = _STATIC_FOLDER / name
    data = path.read_bytes()
    return StaticFile(_CONTENT_TYPES[path.suffix[1:]], f'"{sha256(data).hexdigest()[:20]}"', data)
