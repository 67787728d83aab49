"""The real program as a child process: `python -m dragoman serve` with its own home."""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Mapping
from pathlib import Path

import msgspec


class Gateway(msgspec.Struct):
    url: str
    process: subprocess.Popen[str]

    def stop(self, how: signal.Signals = signal.SIGTERM) -> int:
        self.process.send_signal(how)
        return self.process.wait(30)


@contextlib.asynccontextmanager
async def gateway_process(
    home: Path, *args: str, env: Mapping[str, str] | None = None
) -> AsyncIterator[Gateway]:
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("GEMINI", "GOOGLE", "DRAGOMAN"))
    }
    process = subprocess.Popen(
        [sys.executable, "-m", "dragoman", "serve", "--port", "0", *args],
        env={**kept, "DRAGOMAN_HOME": str(home), **(env or {})},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert process.stdout is not None
    with process.stdout:
        try:
            yield Gateway(await asyncio.to_thread(_wait_ready, process), process)
        finally:
            if process.poll() is None:
                process.kill()
            process.wait()


def _wait_ready(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    said = []
    for line in process.stdout:
        said.append(line)
        found = re.search(r"ready on (http://\S+)", line)
        if found:
            return found[1]
    raise AssertionError("the gateway did not start: " + "".join(said))
