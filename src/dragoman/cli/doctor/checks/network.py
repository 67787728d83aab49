"""Check the proxy and the trusted certificate authorities."""

from __future__ import annotations

import ssl
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

from dragoman.cli.doctor.finding import DoctorContext, Finding
from dragoman.errors import UpstreamError
from dragoman.upstream.hosts import AI_STUDIO, vertex_base_url
from dragoman.upstream.proxy import SOCKS_SCHEMES, parse_proxy

_CA_FILES = ("SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "NODE_EXTRA_CA_CERTS")
_LOOPBACK = ("127.0.0.1", "localhost")


def check_proxy(at: DoctorContext) -> Iterator[Finding]:
    proxies = getproxies()
    if not proxies.keys() & {"http", "https", "all"}:
        yield Finding(status="ok", what="none")
        return
    missing = [name for name in _LOOPBACK if not proxy_bypass(name)]
    if missing and proxies.keys() & {"http", "all"}:
        yield Finding(
            status="warn",
            what=f"NO_PROXY does not name {' and '.join(missing)}",
            why="a client started by hand would ask the proxy for this machine; launchers see to it themselves",
            fix=f"export NO_PROXY={','.join([*_named(at), *missing])}",
        )
    address = urlsplit(_upstream(at))
    host = address.hostname or ""
    proxy = proxies.get(address.scheme) or proxies.get("all", "")
    if not proxy or proxy_bypass(host):
        yield Finding(status="ok", what=f"set, and not used for {host}")
        return
    try:
        found = parse_proxy(proxy)
    except UpstreamError as error:
        yield Finding(
            status="fail",
            what=f"the proxy for {host} cannot be used",
            why=error.message,
            fix="set HTTPS_PROXY to an http:// or socks5:// address, or unset it",
        )
        return
    if found.scheme in SOCKS_SCHEMES and find_spec("aiohttp_socks") is None:
        yield Finding(
            status="fail",
            what=f"the proxy for {host} is a SOCKS proxy",
            why="SOCKS needs a package that is not installed",
            fix="pip install 'dragoman[socks]'",
        )
        return
    yield Finding(status="ok", what=f"{host} is asked through {found.host}:{found.port or 1080}")


def check_ca(at: DoctorContext) -> Iterator[Finding]:
    broken = [name for name in _CA_FILES if at.env.get(name) and not Path(at.env[name]).is_file()]
    for name in broken:
        yield Finding(
            status="fail" if name == "SSL_CERT_FILE" else "warn",
            what=f"{name} is {at.env[name]}, which is no file",
            why="certificates are looked up there, so none is believed",
            fix=f"unset {name}, or name a file of certificates",
        )
    if "SSL_CERT_FILE" in broken:
        return
    known = ssl.create_default_context().cert_store_stats()["x509_ca"]
    paths = ssl.get_default_verify_paths()
    folder = Path(paths.capath) if paths.capath else None
    if known or (folder is not None and folder.is_dir() and any(folder.iterdir())):
        yield Finding(status="ok", what=f"{known or 'the'} authorities of this system are believed")
    else:
        yield Finding(
            status="fail",
            what="this system knows no certificate authority",
            why="nothing that is reached over https can be believed",
            fix="install the package ca-certificates, or set SSL_CERT_FILE",
        )


def _named(at: DoctorContext) -> list[str]:
    given = at.env.get("no_proxy") or at.env.get("NO_PROXY") or ""
    return [name.strip() for name in given.split(",") if name.strip()]


def _upstream(at: DoctorContext) -> str:
    if at.settings is None:
        return AI_STUDIO
    upstream = at.settings.config.upstream
    if upstream.base_url:
        return upstream.base_url
    return vertex_base_url(upstream.location) if at.settings.config.backend == "vertex" else AI_STUDIO
