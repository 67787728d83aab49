"""The dashboard's cookie: somebody has shown an admin's gateway key, until then; pure.

It is signed with what is kept of that key, so that every worker and replica knows it, and it ends with the key.
"""

from __future__ import annotations

import hmac
from collections.abc import Iterable, Mapping
from hashlib import sha256

import msgspec

LIFETIME_S = 12 * 3600
_NAME = "dragoman"
_PURPOSE = b"dragoman dashboard cookie 1"
_DIGITS = 12  # of a time
_MAX_ID = 64


class Pass(msgspec.Struct, frozen=True, kw_only=True):
    """What a cookie says: an id of its own, when it ends, and by whose key it was given."""

    id: str
    ends_s: int
    key_hash: str


def write_pass(given: Pass) -> str:
    return f"{given.id}.{given.ends_s}.{_signature(given.key_hash, given.id, given.ends_s)}"


def read_pass(value: str, key_hashes: Iterable[str], now_s: float) -> Pass | None:
    """Whose pass it is; all keys are compared, whichever fits."""
    parts = value.split(".")
    if len(parts) != 3 or not parts[0].isalnum() or len(parts[0]) > _MAX_ID:
        return None
    pass_id, ends, signature = parts
    if not (ends.isascii() and ends.isdecimal()) or len(ends) > _DIGITS or not signature.isascii():
        return None
    passes = [Pass(id=pass_id, ends_s=int(ends), key_hash=one) for one in key_hashes]
    fits = [hmac.compare_digest(_signature(one.key_hash, one.id, one.ends_s), signature) for one in passes]
    found = next((one for one, fit in zip(passes, fits, strict=True) if fit), None)
    return found if found is not None and now_s < found.ends_s else None


def cookie_name(headers: Mapping[str, str]) -> str:
    """Browsers tell hosts apart, but not their ports: two gateways on one machine would overwrite each other's."""
    port = headers.get("host", "").rpartition(":")[2]
    return f"{_NAME}_{port}" if port.isascii() and port.isdecimal() else _NAME


def cookie_value(headers: Mapping[str, str]) -> str:
    from http.cookies import CookieError, SimpleCookie  # for those who open the page

    try:
        found = SimpleCookie(headers.get("cookie", "")).get(cookie_name(headers))
    except CookieError:
        return ""
    return found.value if found is not None else ""


def set_cookie(headers: Mapping[str, str], value: str, lifetime_s: int) -> tuple[str, str]:
    """The header that gives it, or takes it away (0 seconds). Over TLS it never leaves TLS.

    The page's own address tells: a proxy in front of us may have taken TLS off.
    """
    secure = "; Secure" if headers.get("origin", "").startswith("https://") else ""
    kept = f"Path=/dashboard; Max-Age={lifetime_s}; HttpOnly; SameSite=Strict{secure}"
    return "set-cookie", f"{cookie_name(headers)}={value}; {kept}"


def is_own_page(headers: Mapping[str, str]) -> bool:
    """Whether a page of this very address asks: only such a one may change anything with a cookie alone."""
    origin = headers.get("origin", "").partition("://")[2]
    return bool(origin) and origin == headers.get("host", "")


def _signature(key_hash: str, pass_id: str, ends_s: int) -> str:
    root = hmac.digest(key_hash.encode(), _PURPOSE, sha256)
    return hmac.new(root, f"{pass_id}.{ends_s}".encode(), sha256).hexdigest()
