"""The page about the emulator says what the emulator does: its programs run, its tables are the code's."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest

from dragoman.cli.emulator import FAULT_GROUPS, usage
from dragoman.cli.emulator import make_parser as emulator_parser
from dragoman.cli.serve import make_parser as serve_parser
from dragoman.emulator.faults import FAULTS
from dragoman.emulator.validate import NEW_USER_KEY, REJECTED_KEYS
from tests.unit.emulator.builders import OLD_MODEL, ask, hello, send
from tests.unit.emulator.documentation import DOCS, blocks, check_or_bless_section, rows

pytest_plugins = ["pytester"]

PAGE = DOCS / "emulator.md"
_TEXT = {"type": "string"}
_PARAMETERS = {
    "get_weather": {"city": _TEXT},
    "list_files": {"directory": _TEXT},
    "read_file": {"path": _TEXT},
    "write_file": {"path": _TEXT, "content": _TEXT},
}
_DIRECTED = {"Bash": {"command": _TEXT}, "Read": {"file_path": _TEXT}}
_DIRECTED |= {"Write": {"file_path": _TEXT, "content": _TEXT}}


def test_a_stranger_can_test_an_agent_as_the_page_says(pytester: pytest.Pytester) -> None:
    files = [(name, text) for name, text in blocks(PAGE, "python") if name]
    assert {name for name, _ in files} == {"notes_agent.py", "test_notes_agent.py"}
    for name, text in files:
        (pytester.path / name).write_text(text)
    pytester.runpytest_subprocess("-p", "no:cacheprovider").assert_outcomes(passed=11)


def test_the_curl_of_the_page_gets_an_answer() -> None:
    [(_, command)] = blocks(PAGE, "sh")
    found = re.search(r"curl http://127\.0\.0\.1:8378(\S+) .*-d '(.*)'", command, re.DOTALL)
    assert found is not None
    assert said(ask(json.loads(found[2]), path=found[1])) == "hello"


def test_the_faults_of_the_page_are_the_code() -> None:
    check_or_bless_section(PAGE, "faults", "\n".join(fault_tables()))


def fault_tables() -> Iterator[str]:
    for title, kinds in FAULT_GROUPS.items():
        yield from (f"### {title}", "", "| fault | |", "|---|---|")
        yield from (f"| `{usage(kind)}` | {kind.help} |" for kind in kinds)
        yield ""


def test_no_fault_is_in_no_group() -> None:
    assert [kind.name for kinds in FAULT_GROUPS.values() for kind in kinds] == list(FAULTS)


def test_each_key_of_the_page_gets_its_answer_and_none_is_missing() -> None:
    named = dict(rows(PAGE, "keys"))
    assert set(named) == {*REJECTED_KEYS, NEW_USER_KEY}
    for key, answer in named.items():
        assert send(hello(), key=key, model=OLD_MODEL).status == int(answer[:3])


def test_the_free_words_of_the_page_lead_to_its_calls() -> None:
    wishes = rows(PAGE, "wishes")
    assert len(wishes) >= 7
    for prompt, calls in wishes:
        wanted = [re.findall(r"`(\w+)`", step) for step in calls.split(", then")]
        assert steps_of(prompt, _PARAMETERS)[0] == [step for step in wanted if step], prompt


def test_the_directives_of_the_page_are_followed() -> None:
    [(_, prompt)] = blocks(PAGE, "text")
    assert steps_of(prompt, _DIRECTED) == ([["Bash", "Read"], ["Write"]], "all done")


def test_every_flag_of_the_pages_exists() -> None:
    known = {flag for parser in (emulator_parser(), serve_parser()) for flag in parser._option_string_actions}
    for page in (PAGE, DOCS / "emulator-scripts.md"):
        said = set(re.findall(r"(?<![\w-])--[a-z][a-z-]+", page.read_text("utf-8")))
        assert said <= known, page.name
        assert said


def test_the_contents_lead_to_their_headings() -> None:
    text = PAGE.read_text("utf-8")
    titles = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    headings = {re.sub(r"[^\w -]", "", title).lower().replace(" ", "-") for title in titles}
    places = re.findall(
        r"\]\((?:emulator\.md)?#([^)]+)\)", text + (DOCS / "emulator-scripts.md").read_text("utf-8")
    )
    assert len(places) >= 8
    assert set(places) <= headings


def steps_of(prompt: str, parameters: dict[str, Any]) -> tuple[list[list[str]], str]:
    """The functions the model calls, step by step, and its last words."""
    functions = [
        {"name": name, "parameters": {"type": "object", "properties": fields, "required": list(fields)}}
        for name, fields in parameters.items()
    ]
    contents: list[Any] = [{"role": "user", "parts": [{"text": prompt}]}]
    steps: list[list[str]] = []
    while True:
        answer = ask({"contents": contents, "tools": [{"functionDeclarations": functions}]})
        content = answer["candidates"][0]["content"]
        calls = [part["functionCall"] for part in content["parts"] if "functionCall" in part]
        if not calls:
            return steps, said(answer)
        steps.append([call["name"] for call in calls])
        results = [{"functionResponse": {**_named(call), "response": {"result": "ok"}}} for call in calls]
        contents += [content, {"role": "user", "parts": results}]


def _named(call: dict[str, Any]) -> dict[str, Any]:
    return {key: call[key] for key in ("id", "name") if key in call}


def said(answer: Any) -> str:
    return "".join(part.get("text", "") for part in answer["candidates"][0]["content"]["parts"])
