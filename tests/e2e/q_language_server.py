"""The Amazon Q language server, driven headless: JSON-RPC on stdio, a token, a chat, consent to its tools."""

from __future__ import annotations

import json
import os
import queue
import subprocess
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from tests.e2e.amazon_programs import install_q_server
from tests.e2e.clients import RUN_S

_PROGRAM = Path(__file__).with_suffix(".cjs")
_TAB = "tab-1"
_START_URL = "https://view.awsapps.com/start"  # a Builder ID: any other login ignores AWS_Q_ENDPOINT_URL
_CONSENT = {"run-shell-command", "allow-tools"}
_REFUSAL = {"reject-shell-command", "reject-mcp-tool"}
_STOP_S = 10.0

Message = dict[str, Any]


class QServer:
    """What an IDE plugin does: one chat, and a user who allows every tool (or, `willing` no more, none)."""

    def __init__(self, process: subprocess.Popen[bytes], workspace: Path) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self._out = process.stdin
        self._inbox: queue.Queue[Message | None] = queue.Queue()
        self._number = 0
        self._workspace = workspace
        self._decided: set[str] = set()
        self.willing = True
        self.log: list[str] = []
        threading.Thread(target=self._read, args=(process.stdout,), daemon=True).start()

    def start(self, token: str) -> None:
        folder = {"uri": self._workspace.as_uri(), "name": "work"}
        client = {"name": "AmazonQ-For-VSCode", "version": "1.0.0"}
        extension = {"name": "AmazonQ-For-VSCode", "version": "1.0.0"}
        aws = {
            "clientInfo": {
                **client,
                "extension": extension,
                "clientId": "11111111-2222-3333-4444-555555555555",
            },
            "awsClientCapabilities": {"q": {"developerProfiles": False, "mcp": True}, "window": {}},
        }
        self.request(
            "initialize",
            {
                "processId": os.getpid(),
                "clientInfo": client,
                "rootUri": folder["uri"],
                "workspaceFolders": [folder],
                "capabilities": {"workspace": {"workspaceFolders": True, "configuration": True}},
                "initializationOptions": {"aws": aws},
            },
        )
        self.notify("initialized", {})
        metadata = {"sso": {"startUrl": _START_URL}}
        credentials = {"data": {"token": token}, "metadata": metadata, "encrypted": False}
        self.request("aws/credentials/token/update", credentials)
        self.notify("aws/chat/ready", {})
        self.notify("aws/chat/tabAdd", {"tabId": _TAB})

    def models(self) -> Message:
        return self.request("aws/chat/listAvailableModels", {"tabId": _TAB})

    def ask(self, prompt: str, context: Sequence[Mapping[str, Any]] = (), command: str = "") -> Message:
        """The final chat result, after all tools ran; a command is a word like /compact."""
        asked = {"prompt": prompt, "escapedPrompt": prompt, "context": list(context)}
        if command:
            asked["command"] = command
        return self.request(
            "aws/chat/sendChatPrompt",
            {"tabId": _TAB, "prompt": asked, "context": list(context), "partialResultToken": "answers"},
        )

    def request(self, method: str, params: Any) -> Message:
        """Everything that arrives before the answer is dealt with on the way."""
        number = self._send_request(method, params)
        for message in self._arriving(f"answer to {method}"):
            if message.get("id") == number and "method" not in message:
                assert "error" not in message, f"{method}: {message['error']}\n{self.story()}"
                return message.get("result") or {}
        raise AssertionError("there is always a next message")

    def await_log(self, words: str) -> None:
        """Until it has said so, now or before."""
        if any(words in line for line in self.log):
            return
        next(message for message in self._arriving(f"line with {words!r}") if words in str(message))

    def _arriving(self, awaited: str) -> Iterator[Message]:
        """What arrives, dealt with where it asks for something."""
        deadline = time.monotonic() + RUN_S
        while True:
            try:
                message = self._inbox.get(timeout=deadline - time.monotonic())
            except (queue.Empty, ValueError):
                raise TimeoutError(f"no {awaited}:\n{self.story()}") from None
            assert message is not None, f"it ended, no {awaited}:\n{self.story()}"
            self._deal_with(message)
            yield message

    def notify(self, method: str, params: Any) -> None:
        self._send({"method": method, "params": params})

    def story(self) -> str:
        return "\n".join(line[:2000] for line in self.log[-200:])

    def _deal_with(self, message: Message) -> None:
        method, params = message.get("method", ""), message.get("params") or {}
        self.log.append(json.dumps(message))
        if "id" in message and method:
            result: Any = [{} for _ in params["items"]] if method == "workspace/configuration" else None
            self._send({"id": message["id"], "result": result})
        elif method == "$/progress":
            self._decide(params["value"])

    def _decide(self, value: Any) -> None:
        """Press every button that lets a tool run, or does not, once."""
        for part in (value, *value.get("additionalMessages", ())):
            card = (part.get("summary") or {}).get("content") or {}
            headers = (part, part.get("header") or {}, card.get("header") or {})
            buttons = {button["id"] for header in headers for button in header.get("buttons") or ()}
            for button in buttons & (_CONSENT if self.willing else _REFUSAL):
                if part["messageId"] not in self._decided:
                    self._decided.add(part["messageId"])
                    click = {"tabId": _TAB, "messageId": part["messageId"], "buttonId": button}
                    self._send_request("aws/chat/buttonClick", click)

    def _send_request(self, method: str, params: Any) -> int:
        self._number += 1
        self._send({"id": self._number, "method": method, "params": params})
        return self._number

    def _send(self, message: Message) -> None:
        body = json.dumps({"jsonrpc": "2.0", **message}).encode()
        self._out.write(b"Content-Length: %d\r\n\r\n%b" % (len(body), body))
        self._out.flush()

    def _read(self, stream: IO[bytes]) -> None:
        while head := stream.readline():
            if head.lower().startswith(b"content-length:"):
                size = int(head.partition(b":")[2])
                while stream.readline().strip():
                    pass
                self._inbox.put(json.loads(stream.read(size)))
        self._inbox.put(None)


@contextmanager
def q_server(folder: Path, url: str, token: str) -> Iterator[QServer]:
    """A fresh server with a home of its own; its workspace is `folder/work`."""
    home, workspace = folder / "home", folder / "work"
    for path in (home, workspace):
        path.mkdir(parents=True, exist_ok=True)
    env = {"PATH": os.environ["PATH"], "HOME": str(home), "TMPDIR": str(home)}
    env |= {"AWS_Q_REGION": "us-east-1", "AWS_Q_ENDPOINT_URL": url, "NO_PROXY": "127.0.0.1"}
    process = subprocess.Popen(
        ["node", str(_PROGRAM), str(install_q_server()), "--stdio"],
        cwd=workspace,
        env=env,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    try:
        server = QServer(process, workspace)
        server.start(token)
        yield server
    finally:
        process.terminate()
        try:
            process.communicate(timeout=_STOP_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
