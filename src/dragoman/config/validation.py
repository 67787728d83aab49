"""Validation of setting values, alone and in combination; and normalization of the base URL."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable, Mapping
from importlib.util import find_spec
from urllib.parse import urlsplit

import msgspec

from dragoman.config.model import Config
from dragoman.config.tools import McpServer, check_profile
from dragoman.errors import ConfigError

MIN_KEY_LENGTH = 16
_KEY_HINT = "make one with: python3 -c 'import secrets; print(secrets.token_urlsafe(32))'"
_PLACEHOLDER_KEY = re.compile(
    r"<.*>|\.+|x+|test(ing)?|demo|none|null|dummy|sample|secret|password|todo"
    r"|(change|replace)[-_ ]?me.*|sk-(x+|\.+|1234.*|test.*)"
    r"|.*your[-_ ]?((gemini|google|gateway)[-_ ]?)?(api[-_ ]?)?(key|token).*",
    re.IGNORECASE,
)
# An API version at the end of a URL, with the path that users copy along; the gateway adds its own (known problem N4).
_VERSION_SUFFIX = re.compile(r"/(v1(?:alpha|beta)?\d*)(?:/models(?:/.*)?|/openai)?$")
_API_VERSION = re.compile(r"(v1(alpha|beta)?\d*)?")
_LOCATION = re.compile(r"[a-z0-9-]+")


#: Host names and addresses of the loopback interface.
LOOPBACK_NAMES = frozenset({"127.0.0.1", "localhost", "::1"})


def is_loopback(host: str) -> bool:
    """Return whether only this machine can reach a server that is bound to `host`."""
    if host.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def check_gateway_key(key: str, where: str) -> None:
    """Raise `ConfigError` for a key that can be guessed or cannot be sent in a header (known problem Q10)."""
    _check_characters(key, where)
    if _PLACEHOLDER_KEY.fullmatch(key):
        raise ConfigError("this is a sample, not a key\n" + _KEY_HINT, where=where)
    if len(key) < MIN_KEY_LENGTH:
        raise ConfigError(f"a gateway key has at least {MIN_KEY_LENGTH} characters\n{_KEY_HINT}", where=where)


def check_strict_extra(where: str) -> None:
    """Raise `ConfigError` if jsonschema-rs is missing: strict validation would accept wrong arguments."""
    if find_spec("jsonschema_rs") is None:
        raise ConfigError("strict validation needs the extra\npip install 'dragoman[strict]'", where=where)


def check_config(
    config: Config, sources: Mapping[str, str], *, gateway_key: str = ""
) -> tuple[Config, tuple[str, ...]]:
    """Return the settings with a normalized base URL, and notes for the user; raise `ConfigError`."""

    def place(key: str) -> str:
        source = sources.get(key, "")
        name = source.removeprefix("env ").removeprefix("flag ")
        return name if name != source or not source else f"{source}: {key}"

    if config.strict_tool_validation:
        check_strict_extra(place("strict_tool_validation"))
    _check_access(config, place, gateway_key)
    base_url, notes = _normalize_base_url(config.upstream.base_url, place("upstream.base_url"))
    upstream = msgspec.structs.replace(config.upstream, base_url=base_url)
    config = msgspec.structs.replace(config, upstream=upstream)
    _check_upstream(config, place("upstream.api_key"), place("upstream.api_keys"))
    if not _LOCATION.fullmatch(upstream.location):
        raise ConfigError(
            f"{upstream.location!r} is no Google Cloud location", where=place("upstream.location")
        )
    if not _API_VERSION.fullmatch(upstream.api_version):
        message = f"must look like v1beta, not {upstream.api_version!r}"
        raise ConfigError(message, where=place("upstream.api_version"))
    for name, server in config.mcp.servers.items():
        _check_mcp_server(server, f"{place('mcp.servers')}.{name}")
    for name, profile in config.profiles.items():
        check_profile(profile, config.mcp.servers, f"{place('profiles')}.{name}")
    return config, (*notes, *_host_notes(config))


def _host_notes(config: Config) -> tuple[str, ...]:
    if is_loopback(config.server.host) or config.server.allowed_hosts:
        return ()
    why = "clients elsewhere are turned away until server.allowed_hosts names the address they use"
    return (f"{why}, e.g. DRAGOMAN_SERVER_ALLOWED_HOSTS=gateway.example,10.0.0.5",)


def _check_access(config: Config, place: Callable[[str], str], gateway_key: str) -> None:
    server = config.server
    host_place = place("server.host")
    for setting, keys in (("server.keys", server.keys), ("server.admin_keys", server.admin_keys)):
        for key in keys:
            check_gateway_key(key, place(setting))
    if gateway_key:
        check_gateway_key(gateway_key, "DRAGOMAN_GATEWAY_KEY")
    if is_loopback(server.host):
        return
    if server.no_auth:
        raise ConfigError(
            f"no_auth works on loopback only, and {server.host} can be reached from outside\n"
            "leave out no_auth, or bind to 127.0.0.1",
            where=host_place or "server.host",
        )
    if not server.keys and not server.admin_keys and not gateway_key:
        raise ConfigError(
            f"{server.host} can be reached from outside, so gateway keys must be set\n"
            "set server.keys or DRAGOMAN_GATEWAY_KEY, or bind to 127.0.0.1",
            where=host_place or "server.host",
        )


def _check_upstream(config: Config, key_place: str, keys_place: str) -> None:
    upstream = config.upstream
    for key in upstream.all_keys:
        key_place = key_place if key == upstream.api_key else keys_place
        _check_characters(key, key_place)
        # A custom base URL is a proxy or a test server, which may have such keys.
        if not upstream.base_url and config.backend != "emulator" and _PLACEHOLDER_KEY.fullmatch(key):
            raise ConfigError(
                "this is a sample, not a Gemini key\n"
                "get one at https://aistudio.google.com/apikey, or unset it to use the emulator",
                where=key_place,
            )
    if config.backend == "vertex" and not upstream.project and not upstream.all_keys:
        raise ConfigError(
            "Vertex AI needs a project or an express key\nset GOOGLE_CLOUD_PROJECT or GOOGLE_API_KEY",
            where="upstream.project",
        )


def _check_mcp_server(server: McpServer, where: str) -> None:
    """Check what can be checked without I/O; the rest is checked when the servers start."""
    if bool(server.command) == bool(server.url):
        raise ConfigError("a server has either a command or a url", where=where)
    if server.command and server.headers:
        raise ConfigError("headers go to a url; a command takes env", where=where)
    if server.url and server.env:
        raise ConfigError("env goes to a command; a url takes headers", where=where)


def _check_characters(key: str, where: str) -> None:
    if not all("!" <= character <= "~" for character in key):
        raise ConfigError("a key has only visible ASCII characters and no spaces", where=where)


def _normalize_base_url(given: str, where: str) -> tuple[str, tuple[str, ...]]:
    if not given:
        return "", ()
    try:
        parts = urlsplit(given)
        host, _ = parts.hostname or "", parts.port
    except ValueError as error:
        raise ConfigError(f"this is not a URL: {error}", where=where) from None
    if parts.scheme not in ("http", "https") or not host:
        raise ConfigError(
            f"must be a URL like https://example.com, not {_without_credentials(given)!r}", where=where
        )
    if parts.username or parts.password or parts.query or parts.fragment:
        raise ConfigError("must be without user, password, ? and #: the key goes into a header", where=where)
    if parts.scheme == "http" and not is_loopback(host):
        raise ConfigError(
            f"must be https: the key would cross the network to {host} in the clear", where=where
        )
    bare = given.rstrip("/")
    tidy = _VERSION_SUFFIX.sub("", bare).rstrip("/")
    if tidy == bare:
        return bare, ()
    return tidy, (
        f"{where}: {bare.removeprefix(tidy)} was taken off, the gateway adds the API version itself",
    )


def _without_credentials(url: str) -> str:
    """Return a URL that is safe to show: without credentials and query."""
    return url.rpartition("@")[2].partition("?")[0]
