"""The tools that Amazon's own CLI brings along: their schemas reach Google whole, their arguments come back checked.

The schemas are those of aws/amazon-q-developer-cli (`tool_index.json`); the prose in them is ours.
"""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from dragoman.dialects.amazonq import AmazonQ
from dragoman.dialects.base import Target
from dragoman.errors import DragomanError
from dragoman.translation.argument_repair import InvalidArguments
from dragoman.translation.exchange import Exchange, TranslationOptions
from tests.unit.dialects.amazonq.builders import body, tool, with_tools
from tests.unit.dialects.amazonq.strict_reader import read
from tests.unit.dialects.scripted_client import MODELS, refusal

Json = dict[str, Any]

RAW = (Path(__file__).parent / "builtin_tools.json").read_bytes()
SCHEMAS = msgspec.json.decode(RAW, type=dict[str, msgspec.Raw])

#: Arguments as a model should give them; every schema has its own.
GOOD: list[tuple[str, Json]] = [
    ("dummy", {}),
    ("introspect", {}),
    ("introspect", {"query": "how?"}),
    ("execute_bash", {"command": "ls -la 'a b'"}),
    ("fs_read", {"operations": [{"mode": "Line", "path": "/a", "start_line": -5, "end_line": -1}]}),
    (
        "fs_read",
        {"operations": [{"mode": "Image", "image_paths": ["a.png"]}, {"mode": "Directory", "depth": 2}]},
    ),
    ("fs_write", {"command": "create", "path": "/a", "file_text": 'x = "\\n"\n'}),
    (
        "use_aws",
        {
            "service_name": "s3api",
            "operation_name": "list-buckets",
            "parameters": {"max-items": 5, "no-cli-pager": "", "filter": [{"a": None}]},
            "region": "us-east-1",
            "label": "buckets",
        },
    ),
    ("report_issue", {"title": "t"}),
    ("thinking", {"thought": "hm"}),
    ("knowledge", {"command": "search", "query": "q", "limit": 3, "sort_by": "path"}),
    ("todo_list", {"command": "create", "tasks": [{"task_description": "a"}], "todo_list_description": "d"}),
    ("todo_list", {"command": "complete", "completed_indices": [0, 2], "current_id": "1"}),
    ("delegate", {"operation": "launch", "agent": None, "task": "go"}),
    ("delegate", {"operation": {"status": None}}),
    ("delegate", {"operation": {"status": "rust"}}),
    ("glob", {"pattern": "**/*.rs"}),
    ("web_search", {"query": "q"}),
    ("use_subagent", {"command": "InvokeSubagents", "content": {"subagents": [{"query": "q"}]}}),
    ("session", {"operation": "set", "key": "k", "value": True}),
]
#: Arguments that the original schema forbids.
BAD: list[tuple[str, Json]] = [
    ("execute_bash", {}),
    ("fs_read", {"operations": []}),
    ("fs_read", {"operations": [{"path": "/a"}]}),
    ("fs_read", {"operations": [{"mode": "Page"}]}),
    ("fs_write", {"command": "delete", "path": "/a"}),
    (
        "use_aws",
        {"service_name": "s3", "operation_name": "x", "parameters": "-x", "region": "r", "label": "l"},
    ),
    ("todo_list", {"command": "create", "tasks": [{"details": "a"}]}),
    ("delegate", {"operation": "stop"}),
    ("delegate", {"operation": {"status": None, "more": 1}}),
    ("web_search", {"query": "x" * 201}),
]
#: What a model gets wrong and is safe to put right.
MENDED: list[tuple[str, Json, Json]] = [
    (
        "fs_read",
        {"operations": '[{"mode": "Line", "path": "/a", "start_line": "3"}]'},
        {"operations": [{"mode": "Line", "path": "/a", "start_line": 3}]},
    ),
    ("knowledge", {"command": "search", "limit": "3"}, {"command": "search", "limit": 3}),
    (
        "use_subagent",
        {"command": "InvokeSubagents", "content": '{"subagents": [{"query": "q"}]}'},
        {"command": "InvokeSubagents", "content": {"subagents": [{"query": "q"}]}},
    ),
]


def _exchange(*names: str, strict: bool = False) -> Exchange:
    """A request with these tools, their schemas byte for byte."""
    numbers = itertools.count()
    options = TranslationOptions(strict_tool_validation=strict)
    exchange = Exchange(AmazonQ(), new_id=lambda: f"{next(numbers):016d}", options=options)
    raw = body(with_tools(*(tool(name, f"@{name}") for name in names)))
    for name in names:
        raw = raw.replace(b'"@%b"' % name.encode(), bytes(SCHEMAS[name]))
    exchange.decode(raw)
    return exchange


def test_there_are_all_of_them() -> None:
    named = "fs_read fs_write execute_bash use_aws introspect thinking knowledge todo_list delegate dummy"
    assert SCHEMAS.keys() >= {*named.split(), "report_issue"}
    assert {name for name, _ in GOOD} == SCHEMAS.keys()
    assert bytes(SCHEMAS["delegate"]).count(b'"required": ["operation"]') == 2


@pytest.mark.parametrize("proto", [False, True], ids=["json_schema", "parameters"])
@pytest.mark.parametrize("model", MODELS)
def test_google_takes_all_of_them(model: str, proto: bool) -> None:
    sent = _exchange(*SCHEMAS).encode(Target(model=model, proto_schemas=proto))
    assert refusal(model, sent) == ""
    declared = json.loads(sent)["tools"][0]["functionDeclarations"]
    assert [one["name"] for one in declared] == sorted(SCHEMAS)


@pytest.mark.parametrize("proto", [False, True], ids=["json_schema", "parameters"])
def test_what_a_schema_says_reaches_the_model(proto: bool) -> None:
    sent = _exchange(*SCHEMAS).encode(Target(model="gemini-3.8-flash", proto_schemas=proto))
    form = "parameters" if proto else "parametersJsonSchema"
    declared = {
        one["name"]: one[form] for one in json.loads(sent)["tools"][0]["functionDeclarations"] if form in one
    }
    item = declared["fs_read"]["properties"]["operations"]["items"]
    assert declared["fs_read"]["properties"]["operations"]["minItems"] in (1, "1")
    assert item["properties"]["mode"]["enum"] == ["Line", "Directory", "Search", "Image"]
    assert item["properties"]["end_line"]["default"] == -1
    assert declared["delegate"]["required"] == ["operation"]
    assert (
        declared["delegate"]["properties"]["operation"]["description"]
        == "What to do: launch, status, or list"
    )
    assert len(declared["delegate"]["properties"]["operation"]["anyOf"]) == 3
    assert declared["todo_list"]["properties"]["tasks"]["items"]["required"] == ["task_description"]
    assert declared["use_aws"]["properties"]["parameters"]["type"].lower() == "object"


def _answer(exchange: Exchange, name: str, args: Json) -> bytes:
    exchange.encode(Target(model="gemini-3.8-flash"))
    part = {"functionCall": {"name": name, "args": args}}
    chunk = {"candidates": [{"content": {"parts": [part], "role": "model"}, "finishReason": "STOP"}]}
    return (
        exchange.open()
        + exchange.receive(b"data: %b\r\n\r\n" % json.dumps(chunk).encode())
        + exchange.finish()
    )


@pytest.mark.parametrize("strict", [False, True], ids=["mend", "strict"])
@pytest.mark.parametrize(("name", "args"), GOOD)
def test_good_arguments_arrive_as_they_are(name: str, args: Json, strict: bool) -> None:
    exchange = _exchange(*SCHEMAS, strict=strict)
    assert read(_answer(exchange, name, args)).calls == [(name, args)]
    assert [note for note in exchange.notes if note.kind == "mended"] == []


@pytest.mark.parametrize(("name", "args"), BAD)
def test_bad_arguments_are_held_against_the_original_schema(name: str, args: Json) -> None:
    exchange = _exchange(*SCHEMAS, strict=True)
    found = read(_answer(exchange, name, args))
    assert (found.tools, found.failure) == ([], "error")
    failure: DragomanError | None = exchange.failure
    assert isinstance(failure, InvalidArguments)


@pytest.mark.parametrize(("name", "given", "expected"), MENDED)
def test_what_can_safely_be_put_right_is(name: str, given: Json, expected: Json) -> None:
    exchange = _exchange(*SCHEMAS)
    assert read(_answer(exchange, name, given)).calls == [(name, expected)]
    assert {note.kind for note in exchange.notes} >= {"mended"}
