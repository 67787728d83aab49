"""Dragoman as a process of its own: `python -m benchmarks.run_gateway UPSTREAM HOME WORKERS` prints its address."""

from __future__ import annotations

import sys

from benchmarks.http_client import GATEWAY_KEY
from dragoman.config import Config, ServerConfig, UpstreamConfig
from dragoman.process.serve import serve


def main(upstream: str, home: str, workers: str) -> None:
    config = Config(
        home=home,
        server=ServerConfig(port=0, workers=int(workers)),
        upstream=UpstreamConfig(base_url=upstream, api_key="AIzaBenchmark"),
    )
    serve(config, gateway_key=GATEWAY_KEY, on_ready=lambda url: print(f"ready {url}", flush=True))


if __name__ == "__main__":
    main(*sys.argv[1:])
