"""Authentication of API requests: gateway keys, SigV4 signatures, and a client's own Google key.

Requests from web pages are rejected, whatever credentials they have (known problems Q5, Q7, Q8, Q10). The ledger
stores only the scopes of callers; `caller_names` maps scopes to the keys of the settings.
"""

from __future__ import annotations

import hmac
import re
from collections.abc import Mapping
from functools import lru_cache
from hashlib import sha256

import msgspec

from dragoman.config import LOOPBACK_NAMES, Config
from dragoman.errors import InvalidRequest, NotAllowed
from dragoman.gateway.auth import sigv4

#: Headers with credentials: never logged or forwarded. A web page cannot set them without a CORS preflight.
CREDENTIAL_HEADERS = ("authorization", "x-api-key", "x-goog-api-key", "x-amz-security-token")
#: For InvokeModel, aws-sdk-js sends application/octet-stream and boto3 sends no content type.
_UNSPECIFIC_TYPES = frozenset({"", "application/octet-stream"})
_GOOGLE_KEY_PREFIXES = ("AIza", "AQ.")
_COOKIE_SECRET_LABEL = b"dragoman dashboard"
_BEARER = "bearer "
_HOST_CACHE_SIZE = 64
_MAX_QUOTED_CHARACTERS = 100  # characters of a client's header that an error message repeats
_SCOPE_PREFIX_CHARACTERS = 8
_KIRO_KEY_PREFIX = "ksk_"  # Kiro accepts only keys with this prefix
_JSON_TYPES = frozenset({"application/json", "application/x-amz-json-1.0", "application/x-amz-json-1.1"})
_PRESIGNED_FIELD = "x-amz-signature"
_AUTHORITY = re.compile(r"(?:\[(?P<six>[0-9A-Fa-f:.]+)\]|(?P<name>[A-Za-z0-9._-]+))(?::[0-9]{0,5})?")


class Caller(msgspec.Struct, frozen=True):
    """The authenticated caller of a request.

    `google_key` is the caller's own Google API key, which is forwarded and never stored. `scope` is a
    pseudonymous identifier that separates the stored state of callers. `key_hash` is the hash of the gateway
    key that the caller presented, or empty.
    """

    google_key: str = ""
    scope: str = ""
    key_hash: str = ""
    admin: bool = False  # a property of the key; a request cannot claim it


class _GatewayKey(msgspec.Struct, frozen=True):
    """What the gateway derives from a gateway key; the key itself is not stored."""

    hashed: bytes
    signing_root: hmac.HMAC  # verifies SigV4 signatures made with the key
    cookie_secret: str  # signs dashboard cookies; not the plain hash, which settings may contain
    caller: Caller

    @classmethod
    def from_key(cls, key: str, *, admin: bool) -> _GatewayKey:
        hashed = _hash(key)
        caller = Caller(scope=scope_of(key), key_hash=hashed.hex(), admin=admin)
        cookie_secret = hmac.digest(key.encode("utf-8", "replace"), _COOKIE_SECRET_LABEL, sha256).hex()
        return cls(hashed, sigv4.signing_root(key), cookie_secret, caller)


class Authenticator:
    """Authenticate requests by their head; only a signature needs the body too.

    Instances are immutable: when the keys change, create another one.
    """

    def __init__(
        self,
        keys: tuple[str, ...],
        *,
        open_to_all: bool,
        allowed_hosts: tuple[str, ...],
        accepts_google_keys: bool = True,
        admin_keys: tuple[str, ...] = (),
    ) -> None:
        known = dict.fromkeys((*keys, *admin_keys))
        self._keys = tuple(_GatewayKey.from_key(key, admin=key in admin_keys) for key in known)
        self._open_to_all = open_to_all
        self._accepts_google_keys = accepts_google_keys
        self._hosts = LOOPBACK_NAMES | frozenset(host.lower() for host in allowed_hosts)

    @property
    def key_hashes(self) -> tuple[str, ...]:
        return tuple(key.caller.key_hash for key in self._keys)

    @property
    def admin_cookie_secrets(self) -> tuple[str, ...]:
        return tuple(key.cookie_secret for key in self._keys if key.caller.admin)

    def cookie_secret_of(self, caller: Caller) -> str:
        """Return the secret that signs the caller's dashboard cookies; "" without a gateway key."""
        return next((key.cookie_secret for key in self._keys if key.caller == caller), "")

    def admin_by_cookie_secret(self, cookie_secret: str) -> Caller | None:
        """Return the admin whose key has this cookie secret; the cookie's signature must be verified before."""
        return next(
            (key.caller for key in self._keys if key.caller.admin and key.cookie_secret == cookie_secret),
            None,
        )

    def is_known_host(self, headers: Mapping[str, str]) -> bool:
        """Return whether the Host header names this gateway; other names may be DNS rebinding."""
        return _host_name(headers.get("host", "")) in self._hosts

    def check_origin(self, headers: Mapping[str, str]) -> None:
        """Raise NotAllowed for an unknown Host and for a browser's request from another site's page."""
        if not self.is_known_host(headers):
            host = headers.get("host", "")[:_MAX_QUOTED_CHARACTERS]
            why = f"this gateway does not answer to the host name {host!r}; see server.allowed_hosts"
            raise NotAllowed(why, kind="permission")
        origin = headers.get("origin", "")
        if origin and _host_name(origin.partition("://")[2]) not in self._hosts:
            raise NotAllowed("requests from web pages are refused", kind="permission")
        if headers.get("sec-fetch-site", "none") not in ("none", "same-origin"):
            raise NotAllowed("requests from web pages are refused", kind="permission")

    def check_content_type(self, headers: Mapping[str, str]) -> None:
        """Raise InvalidRequest unless the body is JSON, which a web page cannot send without a preflight.

        Amazon's clients may omit the type. A web page could do the same, so that needs a credential header.
        """
        media_type = headers.get("content-type", "").partition(";")[0].strip().lower()
        if media_type in _JSON_TYPES or media_type.endswith("+json"):
            return
        is_empty = not media_type and headers.get("content-length") == "0"
        is_unspecific = media_type in _UNSPECIFIC_TYPES and any(
            name in headers for name in CREDENTIAL_HEADERS
        )
        if not (is_empty or is_unspecific):
            raise InvalidRequest(f"the content type must be application/json, not {media_type or 'missing'}")

    def authenticate(
        self, headers: Mapping[str, str], query: Mapping[str, str], now_s: float
    ) -> Caller | sigv4.SigV4Claim:
        """Return the caller, or the claim of a signed request that `verify_signature` must verify; raise NotAllowed.

        One valid credential is enough: clients send stale ones beside the right one (known problem N1).
        """
        keys = presented_keys(headers)
        if query.get("key"):
            keys.append(query["key"])
        for key in keys:
            caller = self._caller_by_key(key)
            if caller is not None:
                return caller
        google_key = next((key for key in keys if key.startswith(_GOOGLE_KEY_PREFIXES)), "")
        if google_key and self._accepts_google_keys:
            return Caller(google_key=google_key, scope=scope_of(google_key))
        if sigv4.is_signed(headers):
            return self._read_claim(headers, now_s)
        if self._open_to_all:
            return Caller(scope=scope_of(""))
        if any(name.lower() == _PRESIGNED_FIELD for name in query):
            raise NotAllowed("presigned addresses are not taken here: sign the headers of the request")
        if not keys:
            raise NotAllowed("a gateway key is needed: as Authorization: Bearer, x-api-key or x-goog-api-key")
        if google_key:
            raise NotAllowed(
                "a gateway key is needed: a Google key of your own is not enough here (server.google_callers)"
            )
        raise NotAllowed("this gateway key is not known")

    def check_admin(self, caller: Caller) -> None:
        """Raise NotAllowed unless the key has the admin role, even if `open_to_all` (known problems Q3, Q6)."""
        if caller.admin:
            return
        if any(key.caller == caller for key in self._keys):
            raise NotAllowed("this gateway key may not do that; see server.admin_keys", kind="permission")
        raise NotAllowed(
            "a gateway key with the admin role is needed here, also where nobody is asked for one otherwise: "
            "as Authorization: Bearer, x-api-key or x-goog-api-key"
        )

    def verify_signature(self, claim: sigv4.SigV4Claim, head: sigv4.RawHead, body: bytes) -> Caller:
        """Verify a signature and return the caller whose key made it; raise NotAllowed."""
        try:
            return self._caller_by_signature(claim, head, body)
        except NotAllowed:
            if self._open_to_all:
                return Caller(scope=scope_of(""))
            raise

    def _read_claim(self, headers: Mapping[str, str], now_s: float) -> Caller | sigv4.SigV4Claim:
        try:
            return sigv4.read_claim(headers, now_s)
        except NotAllowed:
            if self._open_to_all:
                return Caller(scope=scope_of(""))
            raise

    def _caller_by_signature(self, claim: sigv4.SigV4Claim, head: sigv4.RawHead, body: bytes) -> Caller:
        text = sigv4.string_to_sign(claim, head, body)
        caller = None
        for key in self._keys:  # compare all of them, so that the time leaks nothing
            if hmac.compare_digest(sigv4.sign(key.signing_root, claim, text), claim.signature):
                caller = key.caller
        if caller is None:
            raise NotAllowed(
                "the signature does not fit: the secret access key must be the gateway key, and nothing on the way "
                "may change the request"
            )
        return caller

    def _caller_by_key(self, key: str) -> Caller | None:
        """Return the caller of a gateway key; compare all keys, so that the time leaks nothing."""
        hashed, caller = _hash(key), None
        for known in self._keys:
            if hmac.compare_digest(hashed, known.hashed):
                caller = known.caller
        return caller


def presented_keys(headers: Mapping[str, str]) -> list[str]:
    """Return the keys in the headers, without duplicates; a bearer token also without Kiro's prefix."""
    authorization = headers.get("authorization", "")
    bearer = authorization[len(_BEARER) :].strip() if authorization[: len(_BEARER)].lower() == _BEARER else ""
    kiro = bearer.removeprefix(_KIRO_KEY_PREFIX)
    candidates = (bearer, kiro, headers.get("x-api-key"), headers.get("x-goog-api-key"))
    return list(filter(None, dict.fromkeys(candidates)))


@lru_cache(maxsize=_HOST_CACHE_SIZE)
def _host_name(host: str) -> str:
    """Return the host without its port, or "" if it is malformed, such as `[::1].evil.example`."""
    found = _AUTHORITY.fullmatch(host)
    return (found["six"] or found["name"]).lower() if found else ""


def scope_of(key: str) -> str:
    """Return the scope of a key's owner. All callers without a key share one."""
    return sha256(b"scope:" + key.encode("utf-8", "replace")).hexdigest()[:32] if key else "everybody"


def _hash(key: str) -> bytes:
    return sha256(key.encode("utf-8", "replace")).digest()


def caller_names(config: Config, other_keys: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return names by scope, such as `key 2` for the second of `server.keys`.

    `others` maps keys that are not in the settings to their names.
    """
    key_names = {key: f"key {number}" for number, key in enumerate(config.server.keys, 1)}
    key_names |= {key: f"admin key {number}" for number, key in enumerate(config.server.admin_keys, 1)}
    key_names |= {key: name for key, name in (other_keys or {}).items() if key and key not in key_names}
    return {scope_of(""): "everybody"} | {scope_of(key): name for key, name in key_names.items()}


def caller_name(scope: str, names: Mapping[str, str]) -> str:
    """Return the name of a scope, or `#` and its first characters if its key is not in the settings."""
    return names.get(scope) or f"#{scope[:_SCOPE_PREFIX_CHARACTERS]}"
