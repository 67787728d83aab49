"""Check the way to Google: proxy, certificate authorities, API key, models and clock.

Google is asked with countTokens, which is free, through the gateway's own client.
"""

from __future__ import annotations

import asyncio
import ssl
import time
from collections.abc import Iterator
from email.utils import parsedate_to_datetime
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

import msgspec

from dragoman.cli.banner import API_KEY_URL, describe_upstream
from dragoman.cli.doctor.finding import DoctorContext, Finding
from dragoman.config import Config
from dragoman.dialects.gemini import ALIASES
from dragoman.dialects.gemini.errors import decode_error
from dragoman.errors import DragomanError, UpstreamError
from dragoman.upstream.client import UpstreamClient
from dragoman.upstream.credentials import DefaultCredentials
from dragoman.upstream.endpoints import AI_STUDIO, Endpoint, vertex_base_url
from dragoman.upstream.proxy import SOCKS_SCHEMES, parse_proxy

_CA_FILES = ("SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "NODE_EXTRA_CA_CERTS")
_LOOPBACK = ("127.0.0.1", "localhost")


def check_proxy(context: DoctorContext) -> Iterator[Finding]:
    proxies = getproxies()
    if not proxies.keys() & {"http", "https", "all"}:
        yield Finding(status="ok", what="none")
        return
    missing = [name for name in _LOOPBACK if not proxy_bypass(name)]
    if missing and proxies.keys() & {"http", "all"}:
        yield Finding(
            status="warn",
            what=f"NO_PROXY does not name {' and '.join(missing)}",
            why="a client started by hand would use the proxy for this machine; launchers set NO_PROXY",
            fix=f"export NO_PROXY={','.join([*_named(context), *missing])}",
        )
    address = urlsplit(_upstream(context))
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
    yield Finding(status="ok", what=f"{host} is reached through {found.host}:{found.port or 1080}")


def check_ca(context: DoctorContext) -> Iterator[Finding]:
    broken = [name for name in _CA_FILES if context.env.get(name) and not Path(context.env[name]).is_file()]
    for name in broken:
        yield Finding(
            status="fail" if name == "SSL_CERT_FILE" else "warn",
            what=f"{name} is {context.env[name]}, which is not a file",
            why="certificate authorities are read from it, so no certificate is trusted",
            fix=f"unset {name}, or set it to a certificate file",
        )
    if "SSL_CERT_FILE" in broken:
        return
    known = ssl.create_default_context().cert_store_stats()["x509_ca"]
    paths = ssl.get_default_verify_paths()
    folder = Path(paths.capath) if paths.capath else None
    if known or (folder is not None and folder.is_dir() and any(folder.iterdir())):
        yield Finding(
            status="ok", what=f"{known or 'the'} certificate authorities of this system are trusted"
        )
    else:
        yield Finding(
            status="fail",
            what="this system has no certificate authorities",
            why="no https certificate can be verified",
            fix="install the package ca-certificates, or set SSL_CERT_FILE",
        )


def _named(context: DoctorContext) -> list[str]:
    given = context.env.get("no_proxy") or context.env.get("NO_PROXY") or ""
    return [name.strip() for name in given.split(",") if name.strip()]


def _upstream(context: DoctorContext) -> str:
    if context.settings is None:
        return AI_STUDIO
    upstream = context.settings.config.upstream
    if upstream.base_url:
        return upstream.base_url
    return vertex_base_url(upstream.location) if context.settings.config.backend == "vertex" else AI_STUDIO


_TIMEOUT_S = 20.0
_MAX_CLOCK_SKEW_S = 120.0  # Google rejects tokens from five minutes on
_STUDIO_KEY_PREFIXES = ("AIza", "AQ.")
_QUESTION = b'{"contents": [{"role": "user", "parts": [{"text": "hello"}]}]}'

#: Advice for each kind of error.
_ADVICE = {
    "authentication": f"create a key at {API_KEY_URL} and set GEMINI_API_KEY",
    "permission": "check that the key may use the Gemini API and that the certificate's CA is trusted here",
    "rate_limit": "wait a minute; other keys can be set in upstream.api_keys",
    "quota": "wait until the quota is renewed; other keys can be set in upstream.api_keys",
    "overloaded": "check the network, HTTPS_PROXY and upstream.base_url, then try again",
    "timeout": "check the network, HTTPS_PROXY and upstream.base_url, then try again",
}


class UpstreamProbe(msgspec.Struct, frozen=True, kw_only=True):
    """The outcome of one request to a model, and the Date header of Google's answer."""

    model: str
    key: int = 1  # number of the key, from 1
    error: DragomanError | None = None
    date: str = ""


def check_key(context: DoctorContext) -> Iterator[Finding]:
    if context.settings is None:
        return
    config = context.settings.config
    keys = config.upstream.all_keys
    upstream = describe_upstream(config)
    if config.backend == "emulator":
        configured = config.upstream.kind == "emulator"
        yield Finding(
            status="note",
            what=upstream,
            why="the settings select it"
            if configured
            else "answers come from the built-in emulator, not from Gemini",
            fix="" if configured else f"export GEMINI_API_KEY=…  ({API_KEY_URL})",
        )
        return
    source = context.settings.loaded.sources.get("upstream.api_key", "upstream.api_keys")
    yield Finding(status="ok", what=f"{upstream}" + (f", {len(keys)} key(s), from {source}" if keys else ""))
    unusual = [number for number, key in enumerate(keys, 1) if not key.startswith(_STUDIO_KEY_PREFIXES)]
    if unusual and config.backend == "gemini" and not config.upstream.base_url:
        numbers = ", ".join(map(str, unusual))
        yield Finding(
            status="note",
            what=f"key {numbers} does not start like an AI Studio key ({' or '.join(_STUDIO_KEY_PREFIXES)})",
        )


def check_upstream(context: DoctorContext) -> Iterator[Finding]:
    """Check reachability, models and clock with the same requests."""
    if context.settings is None or context.settings.config.backend == "emulator":
        return
    if context.offline:
        yield Finding(status="note", what="skipped (--offline)")
        return
    config = context.settings.config
    if not config.upstream.all_keys and config.backend == "gemini":
        yield Finding(status="note", what="skipped: clients send their own key")
        return
    try:
        answers = asyncio.run(_probe_upstream(config))
    except DragomanError as error:
        yield Finding(
            status="fail",
            what=error.message.partition("\n")[0],
            fix=_ADVICE.get(error.kind, error.message.partition("\n")[2]),
        )
        return
    yield from _model_findings(answers)
    yield from _clock_findings(answers, time.time())


def _configured_models(config: Config) -> list[str]:
    models = config.models
    named = [
        models.default,
        models.haiku,
        models.sonnet,
        models.opus,
        *models.rules.values(),
        config.agent.model,
    ]
    named += [model for others in models.fallbacks.values() for model in others]
    return list(dict.fromkeys(model for model in named if model))


async def _probe_upstream(config: Config) -> list[UpstreamProbe]:
    upstream = config.upstream
    endpoint = Endpoint(
        backend=config.backend,
        base_url=upstream.base_url,
        version=upstream.api_version,
        project=upstream.project if config.backend == "vertex" else "",
        location=upstream.location,
    )
    client = UpstreamClient(
        connect_timeout_s=min(upstream.connect_timeout_s, _TIMEOUT_S),
        idle_timeout_s=_TIMEOUT_S,
        total_timeout_s=_TIMEOUT_S,
    )
    models = [
        model if endpoint.resolves_aliases else ALIASES.get(model, model)
        for model in _configured_models(config)
    ]
    try:
        probes = [
            _probe_key(client, endpoint, models if number == 1 else models[:1], headers, number)
            for number, headers in enumerate(await _credentials(config), 1)
        ]
        return [answer for answers in await asyncio.gather(*probes) for answer in answers]
    finally:
        await client.close()


async def _credentials(config: Config) -> list[dict[str, str]]:
    """Return the headers for each key, or for Application Default Credentials."""
    keys = config.upstream.all_keys
    if keys:
        return [{"x-goog-api-key": key} for key in keys]
    return [await DefaultCredentials(config.upstream.project).headers()]


async def _probe_key(
    client: UpstreamClient, endpoint: Endpoint, models: list[str], headers: dict[str, str], key: int
) -> list[UpstreamProbe]:
    first = await _count_tokens(client, endpoint, models[0], headers, key)
    # the other models would get the same error
    if first.error is not None and first.error.kind != "not_found":
        return [first]
    return [
        first,
        *await asyncio.gather(*(_count_tokens(client, endpoint, one, headers, key) for one in models[1:])),
    ]


async def _count_tokens(
    client: UpstreamClient, endpoint: Endpoint, model: str, headers: dict[str, str], key: int
) -> UpstreamProbe:
    try:
        async with client.post(
            endpoint.url(model, "countTokens"), headers, _QUESTION, stream=False
        ) as answer:
            body = await answer.read()
            date = answer.headers.get("date", "")
            error = None if answer.status == 200 else decode_error(answer.status, answer.headers, body)
            return UpstreamProbe(model=model, key=key, error=error, date=date)
    except DragomanError as error:
        return UpstreamProbe(model=model, key=key, error=error)


def _model_findings(probes: list[UpstreamProbe]) -> Iterator[Finding]:
    available = list(dict.fromkeys(probe.model for probe in probes if probe.error is None))
    several = any(probe.key > 1 for probe in probes)
    if available:
        yield Finding(status="ok", what=f"reachable; models: {', '.join(available)}")
    for probe in probes:
        if probe.error is None:
            continue
        if probe.error.kind == "not_found":
            yield Finding(
                status="fail",
                what=f"Google does not know the model {probe.model}",
                why=probe.error.message,
                fix="set another model in [models] (or agent.model) of the settings",
            )
            continue
        what = f"key {probe.key}: {probe.error.message}" if several else probe.error.message
        yield Finding(status="fail", what=what, fix=_ADVICE.get(probe.error.kind, ""))


def _clock_findings(probes: list[UpstreamProbe], now_s: float) -> Iterator[Finding]:
    dates = [probe.date for probe in probes if probe.date]
    if not dates:
        return
    try:
        skew_s = now_s - parsedate_to_datetime(dates[0]).timestamp()
    except ValueError:
        return
    if abs(skew_s) > _MAX_CLOCK_SKEW_S:
        direction = "ahead of" if skew_s > 0 else "behind"
        yield Finding(
            status="warn",
            what=f"this machine's clock is {abs(skew_s):.0f} s {direction} Google's",
            why="certificates, tokens and AWS signatures depend on the clock",
            fix="enable time synchronisation (NTP)",
        )
    else:
        yield Finding(status="ok", what=f"the clock agrees with Google's ({skew_s:+.0f} s)")
