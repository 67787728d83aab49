"""Record the tools that real Claude Code versions declare: `python -m tests.e2e.record_schemas`.

Run it when a version is added. What is kept is what a schema translation has to live with; descriptions of
tools are cut to their first line, because they are long and may name the machine they were recorded on.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import msgspec

from tests.e2e.clients import Claude
from tests.e2e.recording_server import Answered, Asked, listen

#: 1.0.128 has the classic tools, 2.1.100 AskUserQuestion without a terminal, 2.1.325 is the newest.
VERSIONS = ("1.0.128", "2.1.100", "2.1.325")
FOLDER = Path(__file__).parent / "schemas"
_DESCRIPTION_CHARS = 160


def load_tools(version: str) -> list[dict[str, Any]]:
    """The recorded tools of a version, as a client declares them."""
    tools: list[dict[str, Any]] = msgspec.json.decode(_file(version).read_bytes())
    return tools


def record(version: str) -> list[dict[str, Any]]:
    """Run the client against a server that only listens, and keep the largest set of tools it declares."""
    with listen(_answer) as server, tempfile.TemporaryDirectory() as folder:
        claude = Claude(
            version=version,
            model="claude-sonnet-4-5",
            folder=Path(folder) / "run",
            url=server.url,
            key="recording",
        )
        claude.run("say hello", env={"ENABLE_TOOL_SEARCH": "false"}).check()
        bodies = [msgspec.json.decode(one.asked.body) for one in server.seen() if one.asked.verb == "POST"]
    tools: list[dict[str, Any]] = max((body.get("tools", []) for body in bodies), key=len)
    return [_tidy(tool) for tool in tools if "input_schema" in tool]


def _tidy(tool: dict[str, Any]) -> dict[str, Any]:
    first = tool["description"].strip().partition("\n")[0]
    return {
        "name": tool["name"],
        "description": first[:_DESCRIPTION_CHARS],
        "input_schema": tool["input_schema"],
    }


def _answer(asked: Asked) -> Answered:
    if asked.verb != "POST" or not asked.target.startswith("/v1/messages"):
        return Answered(status=200, content_type="application/json", body=b"{}")
    if not msgspec.json.decode(asked.body).get("stream"):
        return Answered(status=200, content_type="application/json", body=msgspec.json.encode(_MESSAGE))
    body = "".join(
        f"event: {event['type']}\ndata: {msgspec.json.encode(event).decode()}\n\n" for event in _EVENTS
    )
    return Answered(status=200, content_type="text/event-stream", body=body.encode())


_USAGE = {"input_tokens": 1, "output_tokens": 1}
_MESSAGE: dict[str, Any] = {
    "id": "msg_recording",
    "type": "message",
    "role": "assistant",
    "model": "claude-sonnet-4-5",
    "content": [{"type": "text", "text": "hello"}],
    "stop_reason": "end_turn",
    "stop_sequence": None,
    "usage": _USAGE,
}
_EVENTS: tuple[dict[str, Any], ...] = (
    {"type": "message_start", "message": {**_MESSAGE, "content": [], "stop_reason": None}},
    {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
    {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "hello"}},
    {"type": "content_block_stop", "index": 0},
    {
        "type": "message_delta",
        "delta": {"stop_reason": "end_turn", "stop_sequence": None},
        "usage": _USAGE,
    },
    {"type": "message_stop"},
)


def _file(version: str) -> Path:
    return FOLDER / f"claude-code-{version}.json"


def main() -> None:
    for version in VERSIONS:
        tools = record(version)
        body = msgspec.json.format(msgspec.json.encode(tools), indent=1)
        _file(version).write_bytes(body + b"\n")
        print(version, len(tools), *(tool["name"] for tool in tools))


if __name__ == "__main__":
    main()
