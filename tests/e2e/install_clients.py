"""Fetches the large client programs into the cache: `.ci/run` does it while other tests run."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

from tests.e2e.agents import PACKAGES, install_agent, install_node
from tests.e2e.amazon_programs import install_ai_sdk, install_bedrock_sdk, install_q_client, install_q_server
from tests.e2e.clients import install_claude
from tests.e2e.conftest import CLASSIC, NEW

INSTALLS: tuple[Callable[[], Path], ...] = (
    partial(install_claude, NEW[0]),
    partial(install_claude, CLASSIC[0]),
    *(partial(install_agent, name) for name in PACKAGES),
    install_node,
    install_q_server,
    install_q_client,
    install_bedrock_sdk,
    install_ai_sdk,
)

if __name__ == "__main__":
    for install in INSTALLS:
        print("fetched", install(), flush=True)
