"""Amazon's own JavaScript programs, pinned: the SDK of Bedrock, the streaming client and the language server of Q."""

from __future__ import annotations

import base64
import json
import os
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.e2e.clients import RUN_S, install, install_once, npm_install
from tests.e2e.gateway import GATEWAY_KEY
from tests.e2e.sample_files import make_png

BEDROCK_SDK = "3.1162.0"
Q_CLIENT = "1.0.45"
Q_SERVER = "0.0.128"
AI_SDK = "7.0.169"
AI_SDK_BEDROCK = "5.0.101"

#: The server asks for versions of these that the registry does not have; the newest it has will do.
_Q_SERVER_PARTS = {
    "@aws/chat-client-ui-types": "0.1.68",
    "@aws/language-server-runtimes-types": "0.1.63",
    "@aws/lsp-core": "0.0.18",
}


def install_bedrock_sdk() -> Path:
    return install(f"bedrock-{BEDROCK_SDK}", f"@aws-sdk/client-bedrock-runtime@{BEDROCK_SDK}")


def install_q_client() -> Path:
    return install(f"q-client-{Q_CLIENT}", f"@aws/codewhisperer-streaming-client@{Q_CLIENT}")


def install_q_server() -> Path:
    """It carries five packages inside itself whose own dependencies npm leaves to a script; here without their
    development tools, which would be half a gigabyte."""

    def make(prefix: Path) -> None:
        prefix.mkdir(parents=True, exist_ok=True)
        (prefix / "package.json").write_text(json.dumps({"private": True, "overrides": _Q_SERVER_PARTS}))
        server = f"@aws/lsp-codewhisperer@{Q_SERVER}"
        npm_install(prefix, "--ignore-scripts", server, "@smithy/smithy-client@4.1.2")
        inside = prefix / "node_modules" / "@aws" / "lsp-codewhisperer"
        for name in json.loads((inside / "package.json").read_text())["bundleDependencies"]:
            npm_install(inside / "node_modules" / name, "--ignore-scripts", "--omit=dev", "--no-package-lock")

    return install_once(f"q-server-{Q_SERVER}", make)


def install_ai_sdk() -> Path:
    """Vercel's; in one folder with its provider for Bedrock."""

    def make(prefix: Path) -> None:
        npm_install(prefix, f"ai@{AI_SDK}", f"@ai-sdk/amazon-bedrock@{AI_SDK_BEDROCK}")

    return install_once(f"ai-bedrock-{AI_SDK_BEDROCK}", make)


def run_rounds(
    program: Path, folder: Path, url: str, rounds: Sequence[str], node: Path | str = "node"
) -> dict[str, Any]:
    """What each round saw; the program finds a picture in PICTURE."""
    picture = base64.b64encode(make_png(width=8, height=8)).decode()
    done = subprocess.run(
        [str(node), "--no-warnings", str(program), url, str(folder), GATEWAY_KEY, *rounds],
        env={"PATH": os.environ["PATH"], "HOME": str(folder), "PICTURE": picture, "NO_PROXY": "127.0.0.1"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=RUN_S,
        check=False,
    )
    assert done.returncode == 0, f"{done.stdout[-6000:]}\n{done.stderr[-6000:]}"
    saw = dict(json.loads(line) for line in done.stdout.splitlines())
    assert list(saw) == list(rounds)
    return saw
