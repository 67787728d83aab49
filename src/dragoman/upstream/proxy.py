"""Find the proxy that leads to a host: HTTPS_PROXY, HTTP_PROXY, ALL_PROXY and NO_PROXY, or the system's settings."""

from __future__ import annotations

import os
import sys

from yarl import URL

from dragoman.config import LOOPBACK_NAMES
from dragoman.errors import UpstreamError

SOCKS_SCHEMES = frozenset({"socks4", "socks4a", "socks5", "socks5h"})
_SCHEMES = SOCKS_SCHEMES | {"http", "https"}


def find_proxy(url: URL) -> URL | None:
    """Return the proxy for `url`, or None if the host is reached directly.

    The result may hold a password and must not be put into a message.
    Raises `UpstreamError` if the setting is not the URL of a proxy.
    """
    host = url.host or ""
    if host in LOOPBACK_NAMES:
        return None
    # On Linux only the environment names proxies. urllib.request imports half of the standard library.
    if sys.platform == "linux" and not any(name.lower().endswith("_proxy") for name in os.environ):
        return None
    from urllib.request import getproxies, proxy_bypass

    proxies = getproxies()
    setting = proxies.get(url.scheme) or proxies.get("all")
    return None if not setting or proxy_bypass(host) else parse_proxy(setting)


def parse_proxy(setting: str) -> URL:
    try:
        proxy = URL(setting if "://" in setting else f"http://{setting}")
    except ValueError:
        proxy = URL()
    if proxy.scheme not in _SCHEMES or not proxy.host:
        why = (
            "the proxy setting is not an http://, https:// or socks5:// URL; check HTTPS_PROXY and ALL_PROXY"
        )
        raise UpstreamError(why, kind="permission")
    return proxy
