"""The library on the command line, both ways."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.unit.cli.conftest import Dragoman
from tests.unit.dialects.amazonq.strict_reader import read
from tests.unit.dialects.bedrock.grammar import read_stream

TOOL = {"name": "Bash", "input_schema": {"type": "object", "properties": {"command": {"type": "string"}}}}
REQUEST: dict[str, Any] = {
    "model": "claude-sonnet-4-5",
    "max_tokens": 100,
    "stream": True,
    "mcp_servers": [],
    "messages": [{"role": "user", "content": "hi"}],
    "tools": [TOOL],
}
CALL = {"functionCall": {"name": "Bash", "args": {"command": "ls"}}}
ANSWER = {
    "candidates": [{"content": {"role": "model", "parts": [{"text": "ok"}, CALL]}, "finishReason": "STOP"}],
    "usageMetadata": {"promptTokenCount": 5, "candidatesTokenCount": 3, "totalTokenCount": 8},
    "modelVersion": "gemini-3.5-flash",
}

FUNCTION = {"name": "Bash", "parameters": TOOL["input_schema"]}
HI = [{"role": "user", "content": "hi"}]
#: The same request in every dialect.
REQUESTS: dict[str, dict[str, Any]] = {
    "anthropic": REQUEST,
    "openai_chat": {
        "model": "gpt-5",
        "max_tokens": 100,
        "messages": HI,
        "tools": [{"type": "function", "function": FUNCTION}],
    },
    "openai_responses": {
        "model": "gpt-5",
        "max_output_tokens": 100,
        "input": "hi",
        "tools": [{"type": "function", **FUNCTION}],
    },
    "amazonq": {
        "conversationState": {
            "currentMessage": {
                "userInputMessage": {
                    "content": "hi",
                    "modelId": "claude-sonnet-4",
                    "userInputMessageContext": {
                        "tools": [
                            {
                                "toolSpecification": {
                                    "name": "Bash",
                                    "inputSchema": {"json": TOOL["input_schema"]},
                                }
                            }
                        ]
                    },
                }
            }
        },
        "additionalModelRequestFields": {"max_tokens": 100},
    },
    "bedrock": {
        "modelId": "us.anthropic.claude-sonnet-4-5-v1:0",
        "inferenceConfig": {"maxTokens": 100},
        "messages": [{"role": "user", "content": [{"text": "hi"}]}],
        "toolConfig": {
            "tools": [{"toolSpec": {"name": "Bash", "inputSchema": {"json": TOOL["input_schema"]}}}]
        },
    },
    "gemini": {
        "contents": [{"role": "user", "parts": [{"text": "hi"}]}],
        "generation_config": {"max_output_tokens": 100},
        "tools": [{"function_declarations": [FUNCTION]}],
    },
}
#: Where each dialect's answer has its text, the name of its call, and the call's arguments.
ANSWERED: dict[str, Callable[[Any], tuple[str, str, Any]]] = {
    "anthropic": lambda found: (
        found["content"][0]["text"],
        found["content"][1]["name"],
        found["content"][1]["input"],
    ),
    "openai_chat": lambda found: (
        found["choices"][0]["message"]["content"],
        found["choices"][0]["message"]["tool_calls"][0]["function"]["name"],
        json.loads(found["choices"][0]["message"]["tool_calls"][0]["function"]["arguments"]),
    ),
    "openai_responses": lambda found: (
        found["output"][0]["content"][0]["text"],
        found["output"][1]["name"],
        json.loads(found["output"][1]["arguments"]),
    ),
    "amazonq": lambda found: (
        found["events"][1]["assistantResponseEvent"]["content"],
        found["events"][2]["toolUseEvent"]["name"],
        json.loads(found["events"][3]["toolUseEvent"]["input"]),
    ),
    "bedrock": lambda found: (
        found["output"]["message"]["content"][0]["text"],
        found["output"]["message"]["content"][1]["toolUse"]["name"],
        found["output"]["message"]["content"][1]["toolUse"]["input"],
    ),
    "gemini": lambda found: (
        found["candidates"][0]["content"]["parts"][0]["text"],
        found["candidates"][0]["content"]["parts"][1]["functionCall"]["name"],
        found["candidates"][0]["content"]["parts"][1]["functionCall"]["args"],
    ),
}
#: How each dialect's stream begins and ends.
STREAMED = {
    "anthropic": ("event: message_start\n", 'data: {"type":"message_stop"}\n\n'),
    "openai_chat": ("data: {", "data: [DONE]\n\n"),
    "openai_responses": ("event: response.created\n", "}\n\n"),
    "gemini": ('data: {"candidates"', "}\r\n\r\n"),
}


def as_bytes(document: object) -> bytes:
    return json.dumps(document).encode()


def test_request_to_gemini(dragoman: Dragoman, tmp_path: Path) -> None:
    file = tmp_path / "request.json"
    file.write_bytes(as_bytes(REQUEST))
    done = dragoman("translate", "--from", "anthropic", "--to", "gemini", str(file))
    assert done.returncode == 0
    body = json.loads(done.stdout)
    assert body["contents"] == [{"role": "user", "parts": [{"text": "hi"}]}]
    assert body["tools"][0]["functionDeclarations"][0]["name"] == "Bash"
    assert body["generationConfig"]["maxOutputTokens"] == 100
    assert done.stdout.startswith('{\n  "contents"')
    assert "model claude-sonnet-4-5 → gemini-flash-latest" in done.stderr


def test_notes_go_to_stderr(dragoman: Dragoman) -> None:
    body = as_bytes(REQUEST | {"stop_sequences": list("abcdefg")})
    argv = ("translate", "--from", "anthropic", "--to", "gemini", "--model", "gemini-3.5-flash", "-")
    done = dragoman(*argv, stdin=body)
    assert "dragoman: note: " in done.stderr
    assert "stop_sequences" in done.stderr
    assert "stop_sequences" not in done.stdout


def test_the_effective_mapping_is_used(dragoman: Dragoman) -> None:
    env = {"DRAGOMAN_MODELS_SONNET": "gemini-mine"}
    done = dragoman("translate", "--from", "anthropic", "--to", "gemini", stdin=as_bytes(REQUEST), env=env)
    assert "→ gemini-mine" in done.stderr


@pytest.mark.parametrize(
    "answer",
    [as_bytes(ANSWER), as_bytes([ANSWER]), b"data: " + as_bytes(ANSWER) + b"\r\n\r\n"],
    ids=["json", "array", "sse"],
)
def test_answer_to_anthropic(dragoman: Dragoman, answer: bytes) -> None:
    done = dragoman("translate", "--from", "gemini", "--to", "anthropic", stdin=answer)
    assert done.returncode == 0
    message = json.loads(done.stdout)
    assert message["model"] == "gemini-3.5-flash"
    assert message["stop_reason"] == "tool_use"
    text, call = message["content"]
    assert text == {"type": "text", "text": "ok"}
    assert (call["type"], call["name"], call["input"]) == ("tool_use", "Bash", {"command": "ls"})
    assert message["usage"]["output_tokens"] == 3


@pytest.mark.parametrize("client", REQUESTS)
def test_every_clients_request_becomes_geminis(dragoman: Dragoman, client: str) -> None:
    done = dragoman("translate", "--from", client, "--to", "gemini", stdin=as_bytes(REQUESTS[client]))
    assert done.returncode == 0, done.stderr
    body = json.loads(done.stdout)
    assert body["contents"] == [{"role": "user", "parts": [{"text": "hi"}]}]
    assert body["tools"][0]["functionDeclarations"][0]["name"] == "Bash"
    assert body["generationConfig"]["maxOutputTokens"] == 100
    assert "→ gemini-flash-latest" in done.stderr


@pytest.mark.parametrize("client", REQUESTS)
@pytest.mark.parametrize("known", [True, False], ids=["request known", "answer alone"])
def test_every_client_gets_geminis_answer(
    dragoman: Dragoman, tmp_path: Path, client: str, known: bool
) -> None:
    file = tmp_path / "request.json"
    file.write_bytes(as_bytes(REQUESTS[client]))
    argv = ("translate", "--from", "gemini", "--to", client, *(("--request", str(file)) if known else ()))
    whole = dragoman(*argv, stdin=as_bytes(ANSWER))
    assert whole.returncode == 0, whole.stderr
    assert ANSWERED[client](json.loads(whole.stdout)) == ("ok", "Bash", {"command": "ls"})


@pytest.mark.parametrize("client", STREAMED)
def test_every_client_gets_geminis_answer_as_a_stream(dragoman: Dragoman, client: str) -> None:
    streamed = dragoman("translate", "--from", "gemini", "--to", client, "--stream", stdin=as_bytes(ANSWER))
    opening, ending = STREAMED[client]
    assert streamed.stdout.startswith(opening)
    assert streamed.stdout.endswith(ending)


def amazons_stream(client: str, env: dict[str, str]) -> bytes:
    """Frames are no text: they are taken as they are written."""
    argv = ("translate", "--from", "gemini", "--to", client, "--stream")
    command = [sys.executable, "-m", "dragoman", *argv]
    return subprocess.run(command, env=env, input=as_bytes(ANSWER), capture_output=True, check=True).stdout


def test_amazon_qs_stream_is_written_as_the_frames_it_is(clean_env: dict[str, str]) -> None:
    found = read(amazons_stream("amazonq", clean_env))
    assert (found.text, found.calls) == ("ok", [("Bash", {"command": "ls"})])


def test_bedrocks_stream_is_written_as_the_frames_it_is(clean_env: dict[str, str]) -> None:
    told = read_stream(amazons_stream("bedrock", clean_env))
    assert told.content[0] == {"text": "ok"}
    assert told.content[1]["toolUse"]["input"] == {"command": "ls"}
    assert told.stop == {"stopReason": "tool_use"}


def test_geminis_own_request_may_name_its_model_on_the_command_line(dragoman: Dragoman) -> None:
    argv = ("translate", "--from", "gemini", "--to", "gemini", "--model", "gemini-3.5-flash")
    done = dragoman(*argv, stdin=as_bytes(REQUESTS["gemini"]))
    assert "model gemini-3.5-flash → gemini-3.5-flash" in done.stderr


def test_answer_to_a_request_as_a_stream(dragoman: Dragoman, tmp_path: Path) -> None:
    file = tmp_path / "request.json"
    file.write_bytes(as_bytes(REQUEST))
    argv = ("translate", "--from", "gemini", "--to", "anthropic", "--request", str(file))
    done = dragoman(*argv, "--stream", stdin=as_bytes(ANSWER))
    assert done.stdout.startswith('event: message_start\ndata: {"type":"message_start"')
    assert '"model":"claude-sonnet-4-5"' in done.stdout
    assert done.stdout.endswith('event: message_stop\ndata: {"type":"message_stop"}\n\n')
    whole = dragoman(*argv, stdin=as_bytes(ANSWER))
    assert json.loads(whole.stdout)["type"] == "message"


def test_an_error_answer_is_translated_and_fails(dragoman: Dragoman) -> None:
    error = as_bytes({"error": {"code": 400, "message": "bad", "status": "INVALID_ARGUMENT"}})
    done = dragoman("translate", "--from", "gemini", "--to", "anthropic", stdin=error)
    assert done.returncode == 1
    assert json.loads(done.stdout)["error"] == {"type": "invalid_request_error", "message": "bad"}


def test_a_wrong_request_is_refused_with_its_place(dragoman: Dragoman) -> None:
    body = as_bytes(REQUEST | {"messages": [{"role": "user", "content": [{"type": "hologram"}]}]})
    done = dragoman("translate", "--from", "anthropic", "--to", "gemini", stdin=body)
    assert done.returncode == 1
    assert "messages[0].content[0]" in done.stderr
    assert done.stdout == ""


@pytest.mark.parametrize(
    ("source", "to", "document", "hint"),
    [
        ("openai_chat", "gemini", REQUESTS["openai_responses"], "--from openai_responses"),
        ("openai_responses", "gemini", REQUESTS["gemini"], "--from gemini --to gemini"),
        ("gemini", "gemini", REQUESTS["openai_chat"], "--from openai_chat"),
        ("anthropic", "gemini", ANSWER, "--from gemini --to CLIENT"),
        ("openai_chat", "gemini", REQUESTS["bedrock"], "--from bedrock"),
        ("gemini", "openai_responses", REQUESTS["openai_responses"], "--from openai_responses"),
        ("anthropic", "gemini", REQUESTS["amazonq"], "--from amazonq"),
    ],
)
def test_a_document_of_another_dialect_is_recognised(
    dragoman: Dragoman, source: str, to: str, document: Any, hint: str
) -> None:
    done = dragoman("translate", "--from", source, "--to", to, stdin=as_bytes(document))
    assert (done.returncode, done.stdout) == (1, "")
    assert "hint: this looks like " in done.stderr
    assert hint in done.stderr


def test_a_broken_document_of_the_right_dialect_gets_no_wrong_hint(dragoman: Dragoman) -> None:
    body = as_bytes(REQUESTS["openai_chat"] | {"messages": []})
    done = dragoman("translate", "--from", "openai_chat", "--to", "gemini", stdin=body)
    assert done.returncode == 1
    assert "hint" not in done.stderr


@pytest.mark.parametrize(
    "argv",
    [
        ("--from", "openai_chat", "--to", "openai_responses"),
        ("--from", "anthropic", "--to", "anthropic"),
        ("--from", "anthropic", "--to", "gemini", "--stream"),
        ("--from", "latin", "--to", "gemini"),
        ("--from", "anthropic", "--to", "gemini", "/nowhere.json"),
    ],
)
def test_wrong_usage(dragoman: Dragoman, argv: tuple[str, ...]) -> None:
    done = dragoman("translate", *argv)
    assert done.returncode == 2
    assert "error:" in done.stderr
