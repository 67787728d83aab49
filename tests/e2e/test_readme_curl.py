"""The curl commands of the specification, as the README prints them, against a real gateway without a key."""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.gateway import ASGI_SERVERS, GATEWAY_KEY, Gateway
from tests.requirements import require_program

ROOT = Path(__file__).parents[2]
ADDRESS = "http://127.0.0.1:8377"
PAGES = (
    "README.md",
    "docs/openai.md",
    "docs/gemini.md",
    "docs/web-search.md",
    "docs/tool-search.md",
    "docs/session-tools.md",
)
_COMMANDS = re.compile(r"<!-- curl: ([^\n]*) -->\n```sh\n(.*?)```", re.DOTALL)
_ALL_BLOCKS = re.compile(r"^```sh\n", re.MULTILINE)


class Shell:
    """Runs the named commands of a page in one folder, in the order a reader would."""

    def __init__(self, page: str, url: str, folder: Path) -> None:
        text = (ROOT / page).read_text("utf-8")
        self.commands: dict[str, str] = dict(_COMMANDS.findall(text))
        assert len(self.commands) == len(_ALL_BLOCKS.findall(text))
        self._url = url
        self._folder = folder

    def run(self, name: str) -> str:
        require_program("curl")
        command = self.commands[name]
        assert ADDRESS in command
        done = subprocess.run(
            [require_program("bash"), "-euo", "pipefail", "-c", command.replace(ADDRESS, self._url)],
            cwd=self._folder,
            env={
                "PATH": os.environ["PATH"],
                "HOME": str(self._folder),
                "DRAGOMAN_GATEWAY_KEY": GATEWAY_KEY,
            },
            capture_output=True,
            timeout=60,
            check=True,
        )
        return done.stdout.decode()

    def answer(self, name: str) -> Any:
        found = json.loads(self.run(name))
        assert "error" not in found or found["error"] is None, found
        return found


@pytest.fixture(scope="module", params=["", *ASGI_SERVERS])
def alone(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    """`dragoman serve` on its embedded emulator, and the same application on other ASGI servers."""
    gateway = Gateway(tmp_path_factory.mktemp("alone") / "home", server=request.param)
    gateway.start()
    yield gateway
    gateway.stop()
    assert "Traceback" not in gateway.log()


@pytest.fixture
def readme(alone: Gateway, tmp_path: Path) -> Shell:
    return Shell("README.md", alone.url, tmp_path)


def items(response: Any, kind: str) -> list[Any]:
    return [item for item in response["output"] if item["type"] == kind]


def text_of(response: Any) -> str:
    return "".join(part["text"] for item in items(response, "message") for part in item["content"])


def test_nested_tools_and_a_conversation_give_a_call_and_its_result_alone_an_answer(readme: Shell) -> None:
    first = readme.answer("a call")
    (call,) = items(first, "function_call")
    assert (call["name"], json.loads(call["arguments"])) == ("get_weather", {"city": "Paris"})
    assert first["conversation"] == {"id": "demo"}
    second = readme.answer("its result")
    assert items(second, "function_call") == []
    assert "20 degrees and sunny" in text_of(second)
    assert second["conversation"] == {"id": "demo"}


def test_geminis_own_words_go_both_ways_and_a_result_alone_continues(readme: Shell) -> None:
    (part,) = readme.answer("a call in Gemini's words")["candidates"][0]["content"]["parts"]
    assert (part["functionCall"]["name"], part["functionCall"]["args"]) == ("get_weather", {"city": "Paris"})
    assert part["thoughtSignature"]
    (said,) = readme.answer("its result in Gemini's words")["candidates"][0]["content"]["parts"]
    assert '"celsius":20' in said["text"]
    assert '"sky":"sunny"' in said["text"]


def test_without_tools_the_answer_is_plain_text(readme: Shell) -> None:
    answer = readme.answer("no tools")
    assert [item["type"] for item in answer["output"]] == ["message"]
    assert text_of(answer) == "Good morning"
    assert answer["conversation"] is None
    assert answer["tools"] == []


def test_a_sessions_tool_is_called_answered_by_us_and_the_answer_goes_on(
    alone: Gateway, tmp_path: Path
) -> None:
    page = Shell("docs/session-tools.md", alone.url, tmp_path)
    page.answer("set the tools")
    (choice,) = page.answer("a question")["choices"]
    assert choice["message"]["content"].startswith("[waiting for weather · ")
    (call,) = page.answer("the calls")["calls"]
    assert (call["name"], call["args"]) == ("weather", {"city": "Oslo"})
    assert page.answer("the results")["open_calls"] == []
    (choice,) = page.answer("the answer")["choices"]
    assert "4 degrees and rain" in choice["message"]["content"]
    assert page.answer("what it has")["session"] == "demo"
    assert page.answer("the end")["deleted"]


def test_a_deferred_tool_is_found_and_called(alone: Gateway, tmp_path: Path) -> None:
    content = Shell("docs/tool-search.md", alone.url, tmp_path).answer("a search for tools")["content"]
    assert [block["type"] for block in content] == ["server_tool_use", "tool_search_tool_result", "tool_use"]


@pytest.mark.parametrize("page", PAGES)
def test_every_command_of_the_documentation_works(alone: Gateway, tmp_path: Path, page: str) -> None:
    shell = Shell(page, alone.url, tmp_path)
    assert shell.commands
    for name in shell.commands:
        if "stream" in name:
            assert '"error"' not in shell.run(name).replace('"error":null', "")
        else:
            shell.answer(name)
