"""The dashboard's session cookie: proof, until it expires, that an admin key was presented. Pure functions.

The cookie is signed with a secret derived from that key. So every worker and replica can verify it, and it
becomes invalid when the key is removed.
"""

from __future__ import annotations

import hmac
from collections.abc import Iterable, Mapping
from hashlib import sha256

import msgspec

LIFETIME_S = 12 * 3600
_COOKIE_NAME = "dragoman"
_SIGNATURE_LABEL = b"dragoman dashboard cookie 1"
_MAX_TIME_DIGITS = 12
_MAX_ID_CHARACTERS = 64


class DashboardCookie(msgspec.Struct, frozen=True, kw_only=True):
    """The content of a cookie: its own id, its expiry, and the secret of the key that signs it."""

    id: str
    expires_s: int
    secret: str


def encode_cookie(given: DashboardCookie) -> str:
    """Return the cookie's value."""
    return f"{given.id}.{given.expires_s}.{_signature(given.secret, given.id, given.expires_s)}"


def verify_cookie(value: str, key_hashes: Iterable[str], now_s: float) -> DashboardCookie | None:
    """Verify a cookie's value; None if it is malformed, expired, or signed with none of the keys.

    All keys are compared, so that the time leaks nothing.
    """
    parts = value.split(".")
    if len(parts) != 3 or not parts[0].isalnum() or len(parts[0]) > _MAX_ID_CHARACTERS:
        return None
    pass_id, ends, signature = parts
    if not (ends.isascii() and ends.isdecimal()) or len(ends) > _MAX_TIME_DIGITS or not signature.isascii():
        return None
    passes = [DashboardCookie(id=pass_id, expires_s=int(ends), secret=one) for one in key_hashes]
    fits = [hmac.compare_digest(_signature(one.secret, one.id, one.expires_s), signature) for one in passes]
    found = next((one for one, fit in zip(passes, fits, strict=True) if fit), None)
    return found if found is not None and now_s < found.expires_s else None


def cookie_name(headers: Mapping[str, str]) -> str:
    """Return the cookie's name, which contains the port.

    Cookies are not isolated by port (RFC 6265, section 8.5): two gateways on one host would overwrite each
    other's.
    """
    port = headers.get("host", "").rpartition(":")[2]
    return f"{_COOKIE_NAME}_{port}" if port.isascii() and port.isdecimal() else _COOKIE_NAME


def cookie_value(headers: Mapping[str, str]) -> str:
    """Return the value of the dashboard's cookie, or ""."""
    from http.cookies import CookieError, SimpleCookie  # only dashboard requests need it

    try:
        found = SimpleCookie(headers.get("cookie", "")).get(cookie_name(headers))
    except CookieError:
        return ""
    return found.value if found is not None else ""


def set_cookie(headers: Mapping[str, str], value: str, lifetime_s: int) -> tuple[str, str]:
    """Return the Set-Cookie header; a lifetime of 0 seconds deletes the cookie.

    The cookie is `Secure` if the page was loaded over TLS. That is taken from the Origin header, because a
    proxy in front of the gateway may terminate TLS.
    """
    secure = "; Secure" if headers.get("origin", "").startswith("https://") else ""
    kept = f"Path=/dashboard; Max-Age={lifetime_s}; HttpOnly; SameSite=Strict{secure}"
    return "set-cookie", f"{cookie_name(headers)}={value}; {kept}"


def is_same_origin(headers: Mapping[str, str]) -> bool:
    """Return whether the request comes from a page of this host and port (protection against CSRF)."""
    origin = headers.get("origin", "").partition("://")[2]
    return bool(origin) and origin == headers.get("host", "")


def _signature(key_hash: str, pass_id: str, ends_s: int) -> str:
    root = hmac.digest(key_hash.encode(), _SIGNATURE_LABEL, sha256)
    return hmac.new(root, f"{pass_id}.{ends_s}".encode(), sha256).hexdigest()
