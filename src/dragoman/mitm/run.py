"""Run mitmproxy in this process: on loopback, only for Google's Gemini hosts, with its own certificate authority."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

from dragoman.errors import ConfigError
from dragoman.mitm.addon import GeminiAddon
from dragoman.mitm.traffic import HOSTS

LOOPBACK = "127.0.0.1"
CERTIFICATE = "mitmproxy-ca-cert.pem"

OnReady = Callable[[str], None]


def check_installed() -> None:
    """Raise `ConfigError` if the optional mitmproxy package is missing."""
    if find_spec("mitmproxy") is None:
        raise ConfigError("the proxy needs mitmproxy\npip install 'dragoman[mitm]'")


async def run_proxy(addon: GeminiAddon, *, port: int, folder: Path, on_ready: OnReady) -> None:
    """Serve until SIGINT or SIGTERM.

    `folder` holds the certificate authority, which is created at the first start. `on_ready` is called with the
    proxy's URL.
    """
    from mitmproxy.options import Options
    from mitmproxy.tools.dump import DumpMaster

    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    trusted = os.environ.get("SSL_CERT_FILE") or None  # the same variable as in OpenSSL
    options = Options(
        listen_host=LOOPBACK,
        listen_port=port,
        confdir=str(folder),
        allow_hosts=[rf"^{host}:\d+$" for host in HOSTS],
        upstream_cert=False,  # no connection to Google before the program sends a request
        ssl_verify_upstream_trusted_ca=trusted,
    )
    master = DumpMaster(options, with_termlog=False, with_dumper=False)
    options.update(connection_strategy="lazy", stream_large_bodies=None)
    master.addons.add(addon, _ReadyAddon(master, on_ready))
    loop = asyncio.get_running_loop()
    for name in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(name, master.shutdown)
    await master.run()


class _ReadyAddon:
    """An addon that reports the proxy's URL once it listens."""

    def __init__(self, master: object, on_ready: OnReady) -> None:
        self._master = master
        self._on_ready = on_ready

    def running(self) -> None:
        from mitmproxy.addons.proxyserver import Proxyserver

        server = self._master.addons.get("proxyserver")  # type: ignore[attr-defined]
        if isinstance(server, Proxyserver) and server.listen_addrs():
            host, port, *_ = server.listen_addrs()[0]
            self._on_ready(f"http://{host}:{port}")
