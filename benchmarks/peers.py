"""Other gateways for Gemini, run as their documentation recommends for production."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import msgspec

from benchmarks.http_client import GATEWAY_KEY
from benchmarks.packages import install_node, install_python
from benchmarks.request_encoders import Style

_MODEL = "claude-sonnet-4-5"  # the name in the requests; all of it goes to the one model of the fake Gemini
_UPSTREAM_MODEL = "gemini-flash-latest"
_UPSTREAM_KEY = "AIzaBenchmark"

#: Translators that are no packages of PyPI or npm, or that could not be installed from there.
ABSENT = {
    "CLIProxyAPI": "a Go program; neither PyPI nor npm has it",
    "TensorZero": "its gateway is a Rust program in a container; the package on PyPI is a client",
    "claude-code-router 3": "needs @the-next-ai/ai-gateway, which npm does not have; 2.0.0 is measured",
}


class Command(msgspec.Struct, frozen=True, kw_only=True):
    argv: list[str]
    env: dict[str, str] = {}
    headers: str = ""


class Peer(msgspec.Struct, frozen=True, kw_only=True):
    """`prepare(folder, port, upstream)` installs it, writes its settings and returns its command."""

    name: str
    version: str
    settings: str
    styles: tuple[Style, ...]
    prepare: Callable[[Path, int, str], Command]


def _litellm(folder: Path, port: int, upstream: str) -> Command:
    prefix = install_python("litellm-1.106.0", "litellm[proxy]==1.106.0")
    settings = {
        "model_list": [
            {
                "model_name": _MODEL,
                "litellm_params": {
                    "model": f"gemini/{_UPSTREAM_MODEL}",
                    "api_base": f"{upstream}/v1beta",
                    "api_key": _UPSTREAM_KEY,
                },
            }
        ],
        "litellm_settings": {
            "telemetry": False,
            "drop_params": True,
            # Otherwise it makes a cache at Google in an extra request for every turn with a cache point.
            "disable_anthropic_gemini_context_caching_transform": True,
        },
        "general_settings": {"master_key": GATEWAY_KEY},
    }
    config = _write(folder / "litellm.yaml", settings)  # JSON is YAML
    program = [str(prefix / "bin" / "python"), str(prefix / "bin" / "litellm")]
    where = ["--host", "127.0.0.1", "--port", str(port), "--num_workers", "1", "--telemetry", "False"]
    env = {"LITELLM_MODE": "PRODUCTION", "LITELLM_LOG": "ERROR", "LITELLM_LOCAL_MODEL_COST_MAP": "True"}
    return Command(argv=[*program, "--config", str(config), *where], env=env)


def _claude_code_router(folder: Path, port: int, upstream: str) -> Command:
    modules = install_node("claude-code-router-2.0.0", "@musistudio/claude-code-router@2.0.0")
    provider = {
        "name": "gemini",
        "api_base_url": f"{upstream}/v1beta/models/",
        "api_key": _UPSTREAM_KEY,
        "models": [_UPSTREAM_MODEL],
        "transformer": {"use": ["gemini"]},
    }
    settings = {
        "APIKEY": GATEWAY_KEY,
        "HOST": "127.0.0.1",
        "PORT": port,
        "LOG": False,
        "NON_INTERACTIVE_MODE": True,
        "API_TIMEOUT_MS": 600000,
        "Providers": [provider],
        "Router": {"default": f"gemini,{_UPSTREAM_MODEL}"},
    }
    home = folder / "claude-code-router"
    _write(home / ".claude-code-router" / "config.json", settings)
    program = modules / "@musistudio" / "claude-code-router" / "dist" / "cli.js"
    return Command(argv=["node", str(program), "start"], env={"HOME": str(home), "NODE_ENV": "production"})


def _portkey(_folder: Path, port: int, upstream: str) -> Command:
    modules = install_node("portkey-1.15.2", "@portkey-ai/gateway@1.15.2")
    program = modules / "@portkey-ai" / "gateway" / "build" / "start-server.js"
    headers = (
        f"authorization: Bearer {_UPSTREAM_KEY}\r\n"
        f"x-portkey-provider: google\r\nx-portkey-custom-host: {upstream}/v1beta\r\n"
    )
    return Command(
        argv=["node", str(program), f"--port={port}", "--headless"],
        env={"NODE_ENV": "production", "TRUSTED_CUSTOM_HOSTS": "127.0.0.1,localhost"},
        headers=headers,
    )


def _rosetta(folder: Path, port: int, upstream: str) -> Command:
    prefix = install_python("llm-rosetta-0.13.0", "llm-rosetta==0.13.0")
    settings = {
        "providers": {"google": {"api_key": _UPSTREAM_KEY, "base_url": upstream}},
        "models": {_MODEL: "google", _UPSTREAM_MODEL: "google"},
        "server": {"host": "127.0.0.1", "port": port, "open_on_no_keys": True},
    }
    config = _write(folder / "rosetta.jsonc", settings)
    program = [str(prefix / "bin" / "python"), str(prefix / "bin" / "llm-rosetta-gateway")]
    flags = ["--no-banner", "--log-level", "warning", "--data-dir", str(folder / "rosetta")]
    return Command(argv=[*program, "--config", str(config), *flags])


def _write(path: Path, settings: object) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(settings))
    return path


PEERS: dict[str, Peer] = {
    peer.name: peer
    for peer in (
        Peer(
            name="litellm",
            version="1.106.0",
            settings="one worker, production mode, log level ERROR, no database, no callbacks; its making of a "
            "cache at Google for every turn is switched off, which spares it a request each time",
            styles=("anthropic", "openai_chat"),
            prepare=_litellm,
        ),
        Peer(
            name="ccr",
            version="2.0.0 (claude-code-router)",
            settings="NODE_ENV=production, LOG false, the gemini transformer, one default route",
            styles=("anthropic",),
            prepare=_claude_code_router,
        ),
        Peer(
            name="rosetta",
            version="0.13.0 (llm-rosetta)",
            settings="log level warning, open without keys, defaults otherwise (it keeps a log of requests)",
            styles=("anthropic", "openai_chat", "openai_responses", "gemini"),
            prepare=_rosetta,
        ),
        Peer(
            name="portkey",
            version="1.15.2 (@portkey-ai/gateway)",
            settings="NODE_ENV=production, headless; provider and host in headers. It refuses Anthropic's messages "
            "for Google (“messages is not supported by google”), so it takes part where Chat Completions are spoken",
            styles=("openai_chat",),
            prepare=_portkey,
        ),
    )
}
