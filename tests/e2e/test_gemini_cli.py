"""Gemini CLI straight on `dragoman emulator`: Google's own agent accepts it, and it accepts what the agent sends."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.clients import INSTALL_S
from tests.e2e.directives import plan, together, use
from tests.e2e.emulator import EmulatorProcess, emulator_process
from tests.e2e.gemini_cli import GeminiCli
from tests.e2e.sample_files import make_png

pytestmark = [pytest.mark.clients, pytest.mark.timeout(INSTALL_S)]

ROUTER = "POST /v1beta/models/gemini-3.5-flash-lite:generateContent"
STREAM = "POST /v1beta/models/gemini-3.8-flash:streamGenerateContent"
SEARCH = "POST /v1beta/models/gemini-3-flash-preview:generateContent"
COUNT = "POST /v1beta/models/gemini-3.8-flash:countTokens"


@pytest.fixture(scope="module")
def shared_emulator(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmulatorProcess]:
    with emulator_process(tmp_path_factory.mktemp("emulator")) as emulator:
        yield emulator


@pytest.fixture
def emulator(shared_emulator: EmulatorProcess) -> Iterator[EmulatorProcess]:
    """The record of this test alone, shown when it fails."""
    shared_emulator.forget()
    yield shared_emulator
    print(shared_emulator.log())


@pytest.fixture
def cli(tmp_path: Path, emulator: EmulatorProcess) -> GeminiCli:
    return GeminiCli(folder=tmp_path, url=emulator.url)


def test_it_answers_and_the_session_goes_on(cli: GeminiCli, emulator: EmulatorProcess) -> None:
    assert cli.run("say hello there").check().out.strip() == "hello there"
    # Without -m, and with -m auto, a small model first says which one is to answer.
    assert emulator.accepted() == [ROUTER, STREAM]
    answer = cli.run("say and again", "-m", "auto", "--resume", "latest", "-o", "json").check().answer
    assert answer["response"] == "and again"
    assert emulator.accepted()[2:] == [ROUTER, STREAM]


def test_it_writes_and_reads_in_steps_in_parallel_and_survives_an_error(
    cli: GeminiCli, emulator: EmulatorProcess
) -> None:
    file, missing = cli.cwd / "notes.txt", cli.cwd / "missing.txt"
    steps = plan(
        use("write_file", {"file_path": str(file), "content": "first line\n"}),
        together(
            use("read_file", {"file_path": str(file)}), use("list_directory", {"dir_path": str(cli.cwd)})
        ),
        use(
            "replace",
            {"file_path": str(file), "old_string": "first", "new_string": "second", "instruction": "x"},
        ),
        use("read_file", {"file_path": str(missing)}),
    )
    run = cli.run(steps, "-o", "stream-json").check()
    assert file.read_text() == "second line\n"
    names = [event["tool_name"] for event in run.of("tool_use")]
    assert names == ["write_file", "read_file", "list_directory", "replace", "read_file"]
    results = {event["tool_id"]: event["status"] for event in run.of("tool_result")}
    assert [results[event["tool_id"]] for event in run.of("tool_use")] == [*["success"] * 4, "error"]
    assert "read_file returned: first line" in run.said
    assert f"read_file failed: File not found: {missing}" in run.said
    assert run.of("result")[0]["status"] == "success"
    assert emulator.accepted() == [ROUTER, *[STREAM] * 5]


def test_it_searches_the_web_and_runs_commands(cli: GeminiCli, emulator: EmulatorProcess) -> None:
    steps = plan(
        use("google_web_search", {"query": "what is a dragoman"}),
        together(
            use("run_shell_command", {"command": "echo from-the-shell"}),
            use("glob", {"pattern": "*.nothing"}),
        ),
    )
    answer = cli.run(steps, "-m", "gemini-3.8-flash", "-o", "json").check().answer
    assert "google_web_search returned: Web search results for" in answer["response"]
    assert "example.com" in answer["response"]
    assert "from-the-shell" in answer["response"]
    assert answer["stats"]["tools"]["totalSuccess"] == 3
    # The search is a request of its own, with Google's tool instead of functions.
    assert emulator.accepted() == [STREAM, SEARCH, STREAM, STREAM]


def test_it_shows_a_picture(cli: GeminiCli, emulator: EmulatorProcess) -> None:
    picture = cli.cwd / "dot.png"
    picture.write_bytes(make_png(width=2, height=2))
    run = cli.run(
        use("read_file", {"file_path": str(picture)}), "-m", "gemini-3.8-flash", "-o", "stream-json"
    )
    assert run.check().said.startswith("read_file returned (with image/png): ")
    assert emulator.accepted() == [STREAM, COUNT, STREAM]


def test_a_wrong_key_ends_it_with_googles_words(tmp_path: Path, emulator: EmulatorProcess) -> None:
    cli = GeminiCli(folder=tmp_path, url=emulator.url, key="invalid-key")
    run = cli.run("say hello", "-m", "gemini-3.8-flash")
    assert run.code != 0
    assert "API key not valid. Please pass a valid API key." in run.errors
    assert emulator.requests() == [(STREAM, 400)]
