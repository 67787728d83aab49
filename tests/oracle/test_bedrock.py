"""Amazon's own SDK reads what we write, and its own model of the service says whether it may be written so."""

from __future__ import annotations

import json
from typing import Any

import botocore.session
import pytest
from botocore.exceptions import ClientError, EventStreamError
from botocore.validate import ParamValidator

from dragoman.dialects import CLIENTS
from dragoman.dialects.base import ClientDialect
from dragoman.dialects.bedrock import InvokeClient
from dragoman.dialects.bedrock.blocks import MIMES
from dragoman.dialects.bedrock.encode import _STOP, Echo
from dragoman.dialects.bedrock.wire import Body, InferenceConfig, OutputConfig, ToolConfig
from dragoman.errors import DragomanError, ErrorKind
from dragoman.ir import Finished, collect
from tests.oracle.fake_boto3 import Told, fold, offline
from tests.unit.dialects.bedrock.builders import document, image, reasoning, tool_result, tool_use
from tests.unit.dialects.bedrock.grammar import frames_of
from tests.unit.dialects.bedrock.stream_checks import CLIENT, answer, stream_bytes, whole, whole_bytes
from tests.unit.dialects.bedrock.test_answer import TABLE
from tests.unit.dialects.bedrock.test_errors import TABLE as ERRORS
from tests.unit.dialects.builders import PIXEL, SIGNATURE
from tests.unit.dialects.stream_checks import CALLED, END, USAGE, call, whole_stream

Json = dict[str, Any]

MODEL = botocore.session.get_session().get_service_model("bedrock-runtime")
CONVERSE = MODEL.operation_model("Converse")
STREAM_OUTPUT = MODEL.operation_model("ConverseStream").output_shape.members["stream"]
BOTO = Told()
CUT = Finished(reason="max_tokens", raw="MAX_TOKENS")
BLOCKED = Finished(reason="blocked", raw="SAFETY", detail="no")


def problems(value: Any, shape: Any) -> str:
    """What the service's own model has against a value: missing and unknown members, types, ranges."""
    return str(ParamValidator().validate(value, shape).generate_report())


def allowed(shape: Any, member: str) -> list[str]:
    return list(shape.members[member].enum)


@pytest.mark.parametrize("name", TABLE)
@pytest.mark.parametrize("finished", [END, CALLED, CUT, BLOCKED], ids=lambda finished: finished.reason)
def test_whole_and_streamed_are_the_same_to_boto3(name: str, finished: Finished) -> None:
    events = whole_stream(TABLE[name][0], finished, USAGE)
    read = BOTO.whole(whole_bytes(events))
    del read["ResponseMetadata"]
    assert read == whole(events)
    streamed = fold(BOTO.streamed(stream_bytes(events)))
    for block in streamed["output"]["message"]["content"]:
        if "toolUse" in block:
            block["toolUse"]["input"] = json.loads(block["toolUse"]["input"])
    assert streamed == read


@pytest.mark.parametrize("name", TABLE)
def test_every_answer_is_of_the_services_own_shape(name: str) -> None:
    events = whole_stream(TABLE[name][0], usage=USAGE)
    found = json.loads(CLIENT.encode_response(collect(events), answer(Echo(thought_tokens=True))))
    assert problems(found, CONVERSE.output_shape) == ""
    assert found["stopReason"] in allowed(CONVERSE.output_shape, "stopReason")
    for frame in frames_of(stream_bytes(events)):
        shape = STREAM_OUTPUT.members[frame.headers[":event-type"]]
        assert problems(json.loads(frame.payload), shape) == ""


def test_the_judge_would_notice() -> None:
    good = whole(whole_stream([], usage=USAGE))
    assert "Missing required parameter" in problems({**good, "usage": {}}, CONVERSE.output_shape)
    assert "Unknown parameter" in problems({**good, "ours": 1}, CONVERSE.output_shape)


def test_boto3_sends_our_answer_back_as_history() -> None:
    """Its own checks come first: reasoning needs a text, a call needs an object."""
    sent: list[Json] = []

    def network(request: Any) -> tuple[int, dict[str, str], bytes]:
        sent.append(json.loads(request.body))
        return 200, {"content-type": "application/json"}, whole_bytes(whole_stream([]))

    client = offline(network)
    for name, (events, _blocks) in TABLE.items():
        message = whole(whole_stream(events))["output"]["message"]
        client.converse(modelId="m", messages=[message])
        assert (name, sent[-1]["messages"]) == (name, [message])


def test_arguments_reach_the_tool() -> None:
    args = {"text": 'a "quoted" \\ ünï \u2028 line\n', "n": 10**17, "deep": [{"x": None}]}
    events = whole_stream(call("t1", args=json.dumps(args).encode()), CALLED)
    (block,) = fold(BOTO.streamed(stream_bytes(events)))["output"]["message"]["content"]
    assert json.loads(block["toolUse"]["input"]) == args


def test_heartbeats_between_all_frames_do_not_disturb_boto3() -> None:
    events = whole_stream(TABLE["e3 parallel calls"][0], CALLED, USAGE)
    stream = CLIENT.stream(answer())
    data = stream.open() + b"".join(stream.ping() + stream.feed(event) for event in events)
    assert fold(BOTO.streamed(data)) == fold(BOTO.streamed(stream_bytes(events)))


#: Kinds of which botocore's model of Converse knows no class of its own.
UNMODELLED: set[ErrorKind] = {"conflict", "quota"}


@pytest.mark.parametrize("kind", ERRORS)
@pytest.mark.parametrize("method", ["converse", "converse_stream", "count_tokens", "invoke_model"])
def test_l7_boto3_raises_the_right_class(kind: ErrorKind, method: str) -> None:
    status, name, _ = ERRORS[kind]
    error = DragomanError("what happened", kind=kind, where="messages[0]")
    invoke = InvokeClient(CLIENTS["anthropic"], "m", stream=False)
    dialect: ClientDialect = invoke if method == "invoke_model" else CLIENT
    reply = dialect.encode_error(error)
    client = offline(lambda _request: (reply.status, dict(reply.headers), reply.body))
    asked: dict[str, Json] = {
        "converse": {"messages": []},
        "converse_stream": {"messages": []},
        "count_tokens": {"input": {"converse": {"messages": []}}},
        "invoke_model": {"body": "{}"},
    }
    with pytest.raises(ClientError) as caught:
        getattr(client, method)(modelId="m", **asked[method])
    told = caught.value.response
    assert told["ResponseMetadata"]["HTTPStatusCode"] == status
    assert (told["Error"]["Code"], told["Error"]["Message"]) == (name, "messages[0]: what happened")
    if kind not in UNMODELLED:
        assert isinstance(caught.value, getattr(client.exceptions, name))


@pytest.mark.parametrize(
    ("kind", "attempts"),
    [("rate_limit", 3), ("overloaded", 3), ("internal", 3), ("overflow", 1), ("quota", 1), ("permission", 1)],
)
def test_l3_boto3_tries_again_only_where_that_helps(
    kind: ErrorKind, attempts: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("time.sleep", lambda _seconds: None)
    reply = CLIENT.encode_error(DragomanError("no", kind=kind))
    seen: list[str] = []

    def network(request: Any) -> tuple[int, dict[str, str], bytes]:
        seen.append(request.url)
        return reply.status, dict(reply.headers), reply.body

    with pytest.raises(ClientError):
        offline(network, attempts=3).converse(modelId="m", messages=[])
    assert len(seen) == attempts


def test_h4_overflow_is_said_in_words_that_make_clients_compact() -> None:
    """What Claude Code, LangChain, Strands and LiteLLM look for, each in its own way."""
    error = DragomanError("prompt is too long: 2000000 tokens > 1048576 maximum", kind="overflow")
    reply = CLIENT.encode_error(error)
    with pytest.raises(ClientError) as caught:
        offline(lambda _: (reply.status, dict(reply.headers), reply.body)).converse(modelId="m", messages=[])
    told = caught.value.response["Error"]
    assert told["Code"] == "ValidationException"
    assert "prompt is too long" in told["Message"]


@pytest.mark.parametrize("kind", ERRORS)
def test_e7_an_error_in_the_stream_is_raised_and_what_came_before_is_kept(kind: ErrorKind) -> None:
    stream = CLIENT.stream(answer())
    data = stream.open() + b"".join(map(stream.feed, TABLE["text"][0]))
    data += stream.fail(DragomanError("high demand", kind=kind))
    client = offline(lambda _: (200, {"content-type": "application/vnd.amazon.eventstream"}, data))
    seen: list[Json] = []
    stream_of_events = client.converse_stream(modelId="m", messages=[])["stream"]
    with pytest.raises(EventStreamError) as caught:
        seen.extend(stream_of_events)
    assert fold(seen)["output"]["message"]["content"] == TABLE["text"][1]
    told = caught.value.response["Error"]
    assert (told["Code"], told["Message"]) == (ERRORS[kind][2], "high demand")
    assert ERRORS[kind][2] in STREAM_OUTPUT.members


def _structure(name: str) -> Any:
    return MODEL.shape_for(name)


#: One example of every content block that Amazon's model of the service has.
BLOCKS: dict[str, Json] = {
    "text": {"text": "a"},
    "image": image(),
    "document": document(),
    "video": {"video": {"format": "mp4", "source": {"bytes": PIXEL}}},
    "audio": {"audio": {"format": "mp3", "source": {"bytes": PIXEL}}},
    "toolUse": tool_use(),
    "toolResult": tool_result({"text": "a"}),
    "guardContent": {"guardContent": {"text": {"text": "a"}}},
    "cachePoint": {"cachePoint": {"type": "default"}},
    "reasoningContent": reasoning("a", SIGNATURE.data),
    "citationsContent": {"citationsContent": {"content": [{"text": "a"}], "citations": []}},
    "searchResult": {"searchResult": {"source": "s", "title": "t", "content": [{"text": "a"}]}},
    "toolAddition": {"toolAddition": {"tool": {"name": "Read"}}},
    "toolRemoval": {"toolRemoval": {"tool": {"name": "Read"}}},
}


def _sent(**fields: Any) -> bytes:
    """What boto3 makes of these arguments, after its own checks."""
    sent: list[bytes] = []

    def network(request: Any) -> tuple[int, dict[str, str], bytes]:
        sent.append(request.body)
        return 200, {"content-type": "application/json"}, whole_bytes(whole_stream([]))

    offline(network).converse(modelId="m", **fields)
    return sent[0]


@pytest.mark.parametrize("kind", sorted(_structure("ContentBlock").members))
def test_every_block_boto3_can_send_is_taken(kind: str) -> None:
    block: Any = json.loads(json.dumps(BLOCKS[kind]))
    source = next(iter(block.values())).get("source") if isinstance(block[kind], dict) else None
    if isinstance(source, dict) and "bytes" in source:
        source["bytes"] = b"\x89PNG\r\n\x1a\n"  # boto3 takes the bytes themselves
    CLIENT.decode_request(_sent(messages=[{"role": "user", "content": [block]}]), {})


@pytest.mark.parametrize("kind", sorted(_structure("ToolResultContentBlock").members))
def test_every_content_of_a_result_boto3_can_send_is_taken(kind: str) -> None:
    content = {**BLOCKS, "json": {"json": {"a": 1}}}[kind]
    body = {"messages": [{"role": "user", "content": [tool_result(content)]}]}
    CLIENT.decode_request(json.dumps(body).encode(), {})


@pytest.mark.parametrize(
    ("kind", "shape", "unread"),
    [
        ("image", "ImageFormat", set()),
        ("document", "DocumentFormat", {"doc", "docx", "xls", "xlsx"}),
        ("video", "VideoFormat", {"mkv"}),
        ("audio", "AudioFormat", {"mkv", "mka"}),
    ],
)
def test_every_format_is_read_or_known_not_to_be(kind: str, shape: str, unread: set[str]) -> None:
    assert set(_structure(shape).enum) - set(MIMES[kind]) == unread
    assert set(MIMES[kind]) <= set(_structure(shape).enum)


@pytest.mark.parametrize("role", _structure("ConversationRole").enum)
def test_every_role_boto3_can_send_is_taken(role: str) -> None:
    CLIENT.decode_request(_sent(messages=[{"role": role, "content": [{"text": "a"}]}]), {})


TOOLS: dict[str, Json] = {
    "toolSpec": {"toolSpec": {"name": "f", "inputSchema": {"json": {"type": "object"}}}},
    "systemTool": {"systemTool": {"name": "nova_grounding"}},
    "cachePoint": BLOCKS["cachePoint"],
}


@pytest.mark.parametrize("kind", sorted(_structure("Tool").members))
def test_every_tool_boto3_can_send_is_taken(kind: str) -> None:
    fields = {
        "messages": [{"role": "user", "content": [{"text": "a"}]}],
        "toolConfig": {"tools": [TOOLS[kind]]},
    }
    CLIENT.decode_request(_sent(**fields), {})


@pytest.mark.parametrize(
    ("ours", "theirs", "elsewhere"),
    [
        (Body, CONVERSE.input_shape, set()),
        (ToolConfig, _structure("ToolConfiguration"), set()),
        (InferenceConfig, _structure("InferenceConfiguration"), {"topK"}),
        (OutputConfig, _structure("OutputConfig"), set()),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_every_setting_boto3_can_send_is_known_to_us(ours: Any, theirs: Any, elsewhere: set[str]) -> None:
    """`topK` is the AI SDK's."""
    assert set(ours.__struct_encode_fields__) - elsewhere == set(theirs.members)


def test_the_stop_reasons_are_the_services() -> None:
    assert set(_STOP.values()) <= set(_structure("StopReason").enum)


def test_modelled_exceptions_of_a_stream_are_all_there_is() -> None:
    modelled = {name for name in STREAM_OUTPUT.members if name.endswith("Exception")}
    assert {in_stream for _, _, in_stream in ERRORS.values()} == modelled
