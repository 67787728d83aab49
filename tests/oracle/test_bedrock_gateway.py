"""boto3 and AnthropicBedrock with made-up keys at a real gateway, on its emulator: both turns of every conversation."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from anthropic import AnthropicBedrock, AsyncAnthropicBedrock, BadRequestError, beta_tool
from botocore.exceptions import ClientError

from tests.e2e.directives import plan, together, use
from tests.e2e.gateway import Gateway
from tests.e2e.sample_files import make_png
from tests.oracle.fake_boto3 import fold, online

Json = dict[str, Any]

MODEL = "us.anthropic.claude-sonnet-4-5-20250929-v1:0"
ARN = f"arn:aws:bedrock:us-east-1:123456789012:inference-profile/{MODEL}"
SCHEMA = {"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}}}
ADD = {"toolSpec": {"name": "add", "description": "Add.", "inputSchema": {"json": SCHEMA}}}
THINKING: Json = {"thinking": {"type": "enabled", "budget_tokens": 2048}}
BOOK = {
    "type": "object",
    "properties": {"title": {"type": "string"}, "pages": {"type": "integer"}},
    "required": ["title", "pages"],
}


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    gateway = Gateway(tmp_path_factory.mktemp("bedrock") / "home")
    gateway.start()
    yield gateway.url
    gateway.stop()
    assert "Traceback" not in gateway.log()


@pytest.fixture(scope="module")
def boto(url: str) -> Any:
    return online(url)


def user(*content: Json | str) -> Json:
    return {"role": "user", "content": [{"text": one} if isinstance(one, str) else one for one in content]}


def ask(boto: Any, stream: bool, **fields: Any) -> Json:
    if not stream:
        return dict(boto.converse(modelId=MODEL, **fields))
    answer = fold(list(boto.converse_stream(modelId=MODEL, **fields)["stream"]))
    for block in content_of(answer):
        if "toolUse" in block:
            block["toolUse"]["input"] = json.loads(block["toolUse"]["input"])
    return answer


def content_of(answer: Json) -> list[Json]:
    content: list[Json] = answer["output"]["message"]["content"]
    return content


def text_of(answer: Json) -> str:
    return "".join(block.get("text", "") for block in content_of(answer))


def uses_of(answer: Json) -> list[Json]:
    return [block["toolUse"] for block in content_of(answer) if "toolUse" in block]


streams = pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])


@streams
@pytest.mark.parametrize("fields", [{}, THINKING], ids=["quiet", "thinking"])
def test_a_tool_is_called_and_answered(boto: Any, stream: bool, fields: Json) -> None:
    asked: Json = {
        "messages": [user(plan(use("add", {"a": 1, "b": 2}), use("add", {"a": 3, "b": 4})))],
        "toolConfig": {"tools": [ADD]},
        **({"additionalModelRequestFields": fields} if fields else {}),
    }
    inputs: list[Json] = []
    answer = ask(boto, stream, **asked)
    while answer["stopReason"] == "tool_use":
        assert any("reasoningContent" in block for block in content_of(answer)) == bool(fields)
        (call,) = uses_of(answer)
        inputs.append(call["input"])
        result = {"toolUseId": call["toolUseId"], "content": [{"json": {"sum": sum(call["input"].values())}}]}
        asked["messages"] += [answer["output"]["message"], user({"toolResult": result})]
        answer = ask(boto, stream, **asked)
    assert inputs == [{"a": 1, "b": 2}, {"a": 3, "b": 4}]
    assert answer["stopReason"] == "end_turn"
    assert '"sum":7' in text_of(answer)
    assert answer["usage"]["totalTokens"] == answer["usage"]["inputTokens"] + answer["usage"]["outputTokens"]
    assert answer["metrics"]["latencyMs"] >= 0


@streams
def test_parallel_calls_and_an_error_among_their_results(boto: Any, stream: bool) -> None:
    asked: Json = {
        "messages": [user(together(*(use("add", {"a": number, "b": 0}) for number in range(3))))],
        "toolConfig": {"tools": [ADD], "toolChoice": {"auto": {}}},
    }
    answer = ask(boto, stream, **asked)
    calls = uses_of(answer)
    assert [call["input"]["a"] for call in calls] == [0, 1, 2]
    results = [
        {
            "toolResult": {
                "toolUseId": call["toolUseId"],
                "content": [{"text": f"answer {number}"}],
                "status": "error" if number == 1 else "success",
            }
        }
        for number, call in reversed(list(enumerate(calls)))
    ]
    asked["messages"] += [answer["output"]["message"], user(*results)]
    answer = ask(boto, stream, **asked)
    assert [line.partition("answer ")[2] for line in text_of(answer).splitlines()] == ["0", "1", "2"]


@pytest.mark.parametrize(
    ("choice", "stop"),
    [({"any": {}}, "tool_use"), ({"tool": {"name": "add"}}, "tool_use"), ({"auto": {}}, "end_turn")],
)
def test_tool_choice(boto: Any, choice: Json, stop: str) -> None:
    config = {"tools": [ADD], "toolChoice": choice}
    assert ask(boto, False, messages=[user("say Nothing to do.")], toolConfig=config)["stopReason"] == stop


def test_pictures_and_documents(boto: Any) -> None:
    picture = {"image": {"format": "png", "source": {"bytes": make_png(width=8, height=8)}}}
    paper = {"document": {"format": "csv", "name": "table", "source": {"bytes": b"a,b\n1,2\n"}}}
    answer = ask(boto, False, messages=[user(picture, paper, "Hmm, what have we here?")])
    assert "image/png" in text_of(answer)
    assert "text/csv" in text_of(answer)


@streams
def test_structured_output(boto: Any, stream: bool) -> None:
    structure = {"jsonSchema": {"schema": json.dumps(BOOK), "name": "book"}}
    config = {"textFormat": {"type": "json_schema", "structure": structure}}
    asked = user('A book called "Dune" with 412 pages.')
    assert text_of(ask(boto, stream, messages=[asked], outputConfig=config)) == '{"title":"Dune","pages":412}'


def test_length_and_stop_sequences(boto: Any) -> None:
    long = user("say " + "one two three four five " * 40)
    assert ask(boto, False, messages=[long], inferenceConfig={"maxTokens": 5})["stopReason"] == "max_tokens"
    stopped = ask(boto, False, messages=[long], inferenceConfig={"stopSequences": ["three"]})
    assert text_of(stopped).strip() == "one two"


@pytest.mark.parametrize(
    "model", [MODEL, ARN, "gemini-3.8-flash", "us.anthropic.claude-gemini-3.8-flash-v1:0"]
)
def test_every_name_of_a_model_leads_somewhere(boto: Any, model: str) -> None:
    answer = boto.converse(modelId=model, messages=[user("say hi")])
    assert text_of(answer) == "hi"
    headers = answer["ResponseMetadata"]["HTTPHeaders"]
    wanted = "gemini-3.8-flash" if "gemini" in model else "gemini-flash-latest"
    assert headers["x-dragoman-model"] == wanted
    assert answer["ResponseMetadata"]["RequestId"] == headers["x-dragoman-request-id"]


def test_tokens_are_counted_for_both_apis(boto: Any) -> None:
    def count(**given: Any) -> int:
        return int(boto.count_tokens(modelId=ARN.rpartition("/")[2], input=given)["inputTokens"])

    plain = count(converse={"messages": [user("Hello there.")]})
    assert plain > 0
    assert count(converse={"messages": [user("Hello there.")], "toolConfig": {"tools": [ADD]}}) > plain
    body = {
        "anthropic_version": "x",
        "max_tokens": 9,
        "messages": [{"role": "user", "content": "Hello there."}],
    }
    assert count(invokeModel={"body": json.dumps(body)}) == plain


def test_what_cannot_be_served_is_refused_where_it_stands(boto: Any) -> None:
    paper = {"document": {"format": "docx", "name": "report", "source": {"bytes": b"PK"}}}
    with pytest.raises(boto.exceptions.ValidationException) as caught:
        boto.converse(modelId=MODEL, messages=[user("look", paper)])
    assert caught.value.response["message"].startswith("messages[0].content[1].document.format: ")


def test_a_path_nobody_knows_is_refused_in_amazons_words(url: str) -> None:
    with pytest.raises(ClientError) as caught:
        online(url).apply_guardrail(guardrailIdentifier="g", guardrailVersion="1", source="INPUT", content=[])
    assert caught.value.response["ResponseMetadata"]["HTTPStatusCode"] == 404


def test_the_control_plane_lists_what_can_be_asked_for(url: str, boto: Any) -> None:
    control = online(url, "bedrock")
    profiles = control.list_inference_profiles()["inferenceProfileSummaries"]
    assert len(profiles) == len({profile["inferenceProfileId"] for profile in profiles})
    first = control.list_inference_profiles(maxResults=2)
    rest = control.list_inference_profiles(nextToken=first["nextToken"])
    assert [*first["inferenceProfileSummaries"], *rest["inferenceProfileSummaries"]] == profiles
    assert control.list_inference_profiles(typeEquals="APPLICATION")["inferenceProfileSummaries"] == []
    profile = control.get_inference_profile(inferenceProfileIdentifier=ARN)
    assert (profile["inferenceProfileId"], profile["status"]) == (MODEL, "ACTIVE")
    models = control.list_foundation_models()["modelSummaries"]
    assert {model["providerName"] for model in models} == {"Anthropic", "Google"}
    (arn,) = (one["modelArn"] for one in profile["models"])
    details = control.get_foundation_model(modelIdentifier=arn)["modelDetails"]
    assert details["modelArn"] == arn
    for name in (profiles[0]["inferenceProfileId"], profiles[-1]["inferenceProfileArn"]):
        assert text_of(boto.converse(modelId=name, messages=[user("say hi")])) == "hi"


MESSAGES: Json = {"anthropic_version": "bedrock-2023-05-31", "max_tokens": 2000}


def test_boto3_invokes_with_an_anthropic_body(boto: Any) -> None:
    """Without a content type, as boto3 does it."""
    body = json.dumps({**MESSAGES, "messages": [{"role": "user", "content": "say hi"}]})
    whole = json.loads(boto.invoke_model(modelId=ARN, body=body)["body"].read())
    assert whole["content"] == [{"type": "text", "text": "hi"}]
    answer = boto.invoke_model_with_response_stream(modelId=ARN, body=body)
    assert answer["contentType"] == "application/json"
    events = [json.loads(event["chunk"]["bytes"]) for event in answer["body"]]
    assert (events[0]["type"], events[-1]["type"]) == ("message_start", "message_stop")


@pytest.fixture(scope="module")
def claude(url: str) -> Iterator[AnthropicBedrock]:
    with AnthropicBedrock(
        base_url=url, aws_access_key="a", aws_secret_key="b", aws_region="us-east-1", max_retries=0
    ) as client:
        yield client


TOOL: Any = {"name": "add", "description": "Add.", "input_schema": SCHEMA}


@streams
@pytest.mark.parametrize("fields", [{}, THINKING], ids=["quiet", "thinking"])
def test_anthropics_sdk_calls_and_answers(claude: AnthropicBedrock, stream: bool, fields: Any) -> None:
    asked: Any = {
        "model": MODEL,
        "max_tokens": 9000,
        "tools": [TOOL],
        "messages": [{"role": "user", "content": plan(use("add", {"a": 1, "b": 2}))}],
        **fields,
    }

    def answer() -> Any:
        if not stream:
            return claude.messages.create(**asked)
        with claude.messages.stream(**asked) as events:
            return events.get_final_message()

    first = answer()
    assert [block.type for block in first.content] == [*(["thinking"] if fields else []), "tool_use"]
    call = first.content[-1]
    assert (first.stop_reason, call.input) == ("tool_use", {"a": 1, "b": 2})
    asked["messages"] += [
        {"role": "assistant", "content": first.content},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": call.id, "content": "3"}]},
    ]
    assert "add returned: 3" in answer().content[-1].text


async def test_anthropics_asynchronous_sdk(url: str) -> None:
    async with AsyncAnthropicBedrock(
        base_url=url, aws_access_key="a", aws_secret_key="b", aws_region="us-east-1"
    ) as client:
        said: Any = [{"role": "user", "content": "say hi"}]
        async with client.messages.stream(model=ARN, max_tokens=99, messages=said) as events:
            assert await events.get_final_text() == "hi"


def test_anthropics_tool_runner(claude: AnthropicBedrock) -> None:
    @beta_tool
    def add(a: int, b: int) -> str:
        """Add two numbers."""
        return str(a + b)

    said: Any = [{"role": "user", "content": plan(use("add", {"a": 30, "b": 4}))}]
    messages: Any = claude.beta.messages
    last = (
        messages.tool_runner(model=MODEL, max_tokens=999, tools=[add], messages=said).until_done().content[-1]
    )
    assert "add returned: 34" in last.text


def test_anthropics_sdk_is_told_what_is_wrong(claude: AnthropicBedrock) -> None:
    wrong: Any = [{"role": "user", "content": [{"type": "hologram"}]}]
    with pytest.raises(BadRequestError, match=r"messages\[0\]\.content\[0\]") as caught:
        claude.messages.create(model=MODEL, max_tokens=9, messages=wrong)
    assert caught.value.response.headers["x-amzn-errortype"] == "ValidationException"
