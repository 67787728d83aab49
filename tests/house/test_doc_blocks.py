"""Every block of code in the README and the guides is run by a test, or there is a reason why not."""

from __future__ import annotations

import json
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import yaml

from dragoman.config import load_config
from tests.house.doc_blocks import ROOT, Block, blocks

#: Blocks in these languages have a test of their own; it must name the page.
RUN_BY = {
    ("README.md", "sh"): "tests/e2e/test_readme_curl.py",
    ("README.md", "python"): "tests/house/test_doc_blocks.py",
    ("docs/openai.md", "sh"): "tests/e2e/test_readme_curl.py",
    ("docs/gemini.md", "sh"): "tests/e2e/test_readme_curl.py",
    ("docs/web-search.md", "sh"): "tests/e2e/test_readme_curl.py",
    ("docs/tool-search.md", "sh"): "tests/e2e/test_readme_curl.py",
    ("docs/session-tools.md", "sh"): "tests/e2e/test_readme_curl.py",
    ("docs/session-tools.md", "python"): "tests/house/test_docs.py",
    ("docs/library.md", "python"): "tests/house/test_docs.py",
    ("docs/bedrock.md", "python"): "tests/oracle/test_bedrock_docs.py",
    ("docs/bedrock.md", "js"): "tests/oracle/test_bedrock_docs.py",
    ("docs/bedrock.md", "py"): "tests/oracle/test_bedrock_docs.py",
    ("docs/tools.md", "python"): "tests/unit/tools/core/test_docs.py",
    ("docs/emulator.md", "python"): "tests/unit/emulator/test_documentation_page.py",
    ("docs/emulator.md", "sh"): "tests/house/test_doc_commands.py",
    ("docs/emulator-scripts.md", "python"): "tests/unit/emulator/script/test_script_documents.py",
    ("docs/emulator-scripts.md", "yaml"): "tests/unit/emulator/script/test_script_documents.py",
}
#: Settings of other programs: they only have to be what they say they are.
FOREIGN = {
    ("docs/clients.md", "toml"): "Codex's own settings; tests/e2e/test_codex.py starts it with the same ones"
}
#: Pictures made of letters, and what somebody prints.
WORDS = frozenset({"", "text"})
ALL = blocks()


def named(block: Block) -> str:
    return f"{block.page}:{block.line}:{block.language}"


def test_no_block_is_left_out() -> None:
    """A new block must be in a language that is run here, or in the table above."""
    here = {"console", "toml", "json", "yaml"} | WORDS
    assert [
        named(block)
        for block in ALL
        if block.language not in here and (block.page, block.language) not in RUN_BY
    ] == []


@pytest.mark.parametrize(("page", "language"), RUN_BY)
def test_who_runs_them_knows_the_page(page: str, language: str) -> None:
    test = ROOT / RUN_BY[page, language]
    assert Path(page).name in test.read_text("utf-8")
    assert any((block.page, block.language) == (page, language) for block in ALL), "the table is out of date"


@pytest.mark.parametrize("block", [block for block in ALL if block.language == "toml"], ids=named)
def test_settings_are_settings(block: Block) -> None:
    if (block.page, block.language) in FOREIGN:
        assert tomllib.loads(block.text)
    else:
        load_config(file_text=block.text.replace("…", "-of-yours"), file_name=named(block), env={}, flags={})


@pytest.mark.parametrize("block", [block for block in ALL if block.language == "json"], ids=named)
def test_json_is_json(block: Block) -> None:
    assert json.loads(block.text)


@pytest.mark.parametrize("block", [block for block in ALL if block.language == "yaml"], ids=named)
def test_yaml_is_yaml(block: Block) -> None:
    assert yaml.safe_load(block.text)


def test_the_test_of_the_readme_is_a_test(tmp_path: Path) -> None:
    """The fixture of README.md, with an agent that asks until it is answered."""
    (block,) = [block for block in ALL if (block.page, block.language) == ("README.md", "python")]
    agent = """
import json, os, time, urllib.error, urllib.request
class my_agent:
    @staticmethod
    def ask(words):
        contents = [{"role": "user", "parts": [{"text": words}]}]
        tools = [{"functionDeclarations": [{"name": "get_weather", "parametersJsonSchema":
            {"type": "object", "properties": {"city": {"type": "string"}}}}]}]
        while True:
            body = json.dumps({"contents": contents, "tools": tools}).encode()
            url = os.environ["GOOGLE_GEMINI_BASE_URL"] + "/v1beta/models/gemini-3.8-flash:generateContent"
            headers = {"x-goog-api-key": "any", "content-type": "application/json"}
            try:
                with urllib.request.urlopen(urllib.request.Request(url, body, headers)) as answer:
                    said = json.load(answer)["candidates"][0]["content"]
            except urllib.error.HTTPError as error:
                error.close()
                continue
            contents.append(said)
            calls = [part["functionCall"] for part in said["parts"] if "functionCall" in part]
            if not calls:
                return "".join(part.get("text", "") for part in said["parts"])
            contents.append({"role": "user", "parts": [{"functionResponse":
                {"id": call["id"], "name": call["name"], "response": {"output": "rain"}}} for call in calls]})
"""
    (tmp_path / "test_mine.py").write_text(agent + block.text)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_mine.py"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert "1 passed" in done.stdout, done.stdout
