"""Conversations as the Rust programs lead them, through a real gateway, with their built-in tools, read strictly."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from tests.e2e.directives import plan, together, use
from tests.e2e.fake_google import Google
from tests.e2e.gateway import Gateway
from tests.e2e.q_cli import FORMS, SCHEMAS, QCli, Refused
from tests.e2e.sample_files import make_png
from tests.unit.dialects.amazonq.strict_reader import Reading, ToolUse

Json = dict[str, Any]

LINES = {"operations": [{"mode": "Line", "path": "/a b", "start_line": -5, "end_line": -1}]}
PICTURE = {"operations": [{"mode": "Image", "image_paths": ["/a.png"]}]}
LIST = {"command": "ls -la 'a b'"}
CANCELLED = "Tool use was cancelled by the user"


@pytest.fixture(params=FORMS)
def cli(request: pytest.FixtureRequest, gateway: Gateway) -> QCli:
    return QCli(gateway.url, FORMS[request.param])


def run(tool: ToolUse) -> Json:
    """As the programs do: bash answers in JSON, reading in text."""
    content = {"json": {"exit_status": "0", "stdout": "ok"}} if "bash" in tool.name else {"text": "a line"}
    return {"toolUseId": tool.id, "content": [content], "status": "success"}


def fail(tool: ToolUse, why: str = "no such file") -> Json:
    return {"toolUseId": tool.id, "content": [{"text": why}], "status": "error"}


def calls(readings: list[Reading]) -> list[list[tuple[str, Json]]]:
    return [reading.calls for reading in readings]


def responses(google: Google) -> list[tuple[str, Json]]:
    """What the last request says of tools that have run."""
    return [
        (part["functionResponse"]["name"], part["functionResponse"]["response"])
        for content in google.requests()[-1]["contents"]
        for part in content["parts"]
        if "functionResponse" in part
    ]


def test_tools_together_and_one_after_another(cli: QCli, google: Google) -> None:
    prompt = plan(together(use("fs_read", LINES), use("execute_bash", LIST)), use("execute_bash", LIST))
    readings = cli.chat(prompt, run)
    bash = ("execute_bash", LIST)
    assert calls(readings) == [[("fs_read", LINES), bash], [bash], []]
    assert [reading.stop_reason for reading in readings] == ["TOOL_USE", "TOOL_USE", "END_TURN"]
    assert all(reading.usage["totalTokens"] > 0 for reading in readings)
    ran = {"exit_status": "0", "stdout": "ok"}
    assert responses(google) == [
        ("fs_read", {"output": "a line"}),
        ("execute_bash", ran),
        ("execute_bash", ran),
    ]
    # Out of a hash map in another order every time, and yet always the same for Google's cache.
    tools = [request["tools"] for request in google.requests()]
    assert tools == [tools[0]] * 3
    assert google.declared() == sorted(SCHEMAS)
    assert google.sentinels() == 0


def test_a_tool_that_fails(cli: QCli, google: Google) -> None:
    *_, last = cli.chat(use("fs_read", LINES), fail)
    assert "no such file" in last.text
    assert responses(google) == [("fs_read", {"error": "no such file"})]


def test_a_picture_that_a_tool_has_read_comes_beside_its_result(cli: QCli, google: Google) -> None:
    (tool,) = cli.say(use("fs_read", PICTURE)).tools
    see = {"text": "See images data supplied"}
    image = {"format": "png", "source": {"bytes": base64.b64encode(make_png(width=8, height=8)).decode()}}
    last = cli.answer([{"toolUseId": tool.id, "content": [see], "status": "success"}], images=[image])
    assert "with image/png" in last.text
    assert google.sentinels() == 0


def test_cancelled_tools_and_a_new_prompt(cli: QCli, google: Google) -> None:
    first = cli.say(together(use("execute_bash", LIST), use("fs_read", LINES)))
    last = cli.say("say never mind\n", [fail(tool, CANCELLED) for tool in first.tools])
    assert (last.text, last.stop_reason) == ("never mind", "END_TURN")
    assert responses(google) == [("execute_bash", {"error": CANCELLED}), ("fs_read", {"error": CANCELLED})]
    *_, results, prompt = google.requests()[-1]["contents"]
    assert (results["role"], prompt["role"]) == ("user", "user")
    assert "say never mind\n" in prompt["parts"][0]["text"]


def test_a_compaction_knows_no_tool_but_dummy(cli: QCli, google: Google) -> None:
    """Tools that are gone are renamed in the history, which may name others that were never declared."""
    cli.chat(together(use("fs_read", LINES), use("execute_bash", LIST)), run)
    renamed = cli.history[3]["assistantResponseMessage"]["toolUses"][0]
    renamed["name"] = "dummy"
    cli.tools = ["dummy"]
    assert cli.say("say a short summary\n").text == "a short summary"
    assert google.declared() == ["dummy"]
    assert [name for name, _ in responses(google)] == ["dummy", "execute_bash"]


@pytest.mark.parametrize("operation", ["launch", {"status": None}])
def test_a_key_that_stands_twice_in_a_schema(cli: QCli, google: Google, operation: Any) -> None:
    assert bytes(SCHEMAS["delegate"]).count(b'"required": ["operation"]') == 2
    args = {"operation": operation}
    assert calls(cli.chat(use("delegate", args), run)) == [[("delegate", args)], []]
    assert google.declarations()["delegate"]["parametersJsonSchema"]["required"] == ["operation"]


def test_a_prompt_that_is_too_long(cli: QCli, google: Google) -> None:
    """Byte for byte: it makes the programs compact and go on."""
    google.overflow_next()
    with pytest.raises(Refused) as refused:
        cli.say("say hello\n")
    assert (refused.value.status, refused.value.told) == (
        400,
        {
            "__type": "ValidationException",
            "message": "Input is too long.",
            "reason": "CONTENT_LENGTH_EXCEEDS_THRESHOLD",
        },
    )
    assert cli.say("say hello\n").text == "hello"


@pytest.mark.parametrize("form", FORMS)
def test_a_wrong_key_is_refused_in_words_and_once(gateway: Gateway, google: Google, form: str) -> None:
    with pytest.raises(Refused) as refused:
        QCli(gateway.url, FORMS[form], "not-the-key-000000000").say("say hello")
    assert (refused.value.status, refused.value.told["__type"]) == (403, "AccessDeniedException")
    assert google.requests() == []


@pytest.mark.parametrize("form", FORMS)
def test_an_answer_that_breaks_off_fails(breaking_gateway: Gateway, form: str) -> None:
    found = QCli(breaking_gateway.url, FORMS[form]).say("Tell me a story.")
    assert found.text.startswith("word ")
    kiro = form == "kiro 3"
    assert found.failure == ("serviceUnavailableError" if kiro else "error")
    assert "broke" in found.complaint["message"]
