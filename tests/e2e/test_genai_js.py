"""Google's JavaScript SDK straight on `dragoman emulator`: one program does the rounds, each is a test."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.clients import INSTALL_S, RUN_S, install_genai
from tests.e2e.emulator import emulator_process

pytestmark = [pytest.mark.clients, pytest.mark.timeout(INSTALL_S)]

VERSION = "2.32.0"
PROGRAM = Path(__file__).with_name("genai_rounds.mjs")
ROUNDS = """
generate stream chat streamedChat forcedCall automaticCalls count files caches embeddings models errors
"""
#: What the rounds ask for to be refused; nothing else may be.
REFUSED = [
    ("GET /v1beta/files/", 403),
    ("GET /v1beta/cachedContents/", 403),
    ("POST /v1beta/cachedContents", 400),
    ("POST /v1beta/models/gemini-3.8-flash:generateContent", 400),
    ("POST /v1beta/models/gemini-2.0-flash:generateContent", 404),
    ("POST /v1beta/models/gemini-3.8-flash:streamGenerateContent", 400),
]


@pytest.fixture(scope="module")
def saw(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What each round of the program saw."""
    sdk = install_genai(VERSION) / "node_modules" / "@google" / "genai" / "dist" / "node" / "index.mjs"
    folder = tmp_path_factory.mktemp("genai-js")
    with emulator_process(folder) as emulator:
        done = subprocess.run(
            ["node", str(PROGRAM), emulator.url, str(sdk), str(folder)],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=RUN_S,
            check=False,
        )
        assert done.returncode == 0, f"{done.stdout}\n{done.stderr}\n{emulator.log()}"
        refused = [(request, status) for request, status in emulator.requests() if status != 200]
    assert len(refused) == len(REFUSED), refused
    for (request, status), (start, expected) in zip(refused, REFUSED, strict=True):
        assert (request.startswith(start), status) == (True, expected), refused
    return {line["name"]: line["saw"] for line in map(json.loads, done.stdout.splitlines())}


def test_every_round_was_done(saw: dict[str, Any]) -> None:
    assert list(saw) == ROUNDS.split()


def test_it_generates_whole_and_streamed(saw: dict[str, Any]) -> None:
    assert saw["generate"] == {"text": "good morning", "usage": 4, "version": "gemini-3.8-flash"}
    assert saw["stream"] == "one two three four five six seven eight nine ten eleven twelve"
    assert saw["count"] == 3


def test_a_chat_brings_signatures_back_with_its_calls(saw: dict[str, Any]) -> None:
    assert saw["chat"] == {
        "names": [["get_weather", "get_time"], ["get_weather"]],
        "text": "get_weather returned: get_weather of Oslo\n"
        "get_time returned: get_time of nowhere\n"
        "get_weather returned: get_weather of Rome",
        "signed": 3,
    }
    assert saw["streamedChat"] == {"text": "get_weather returned: get_weather of Bern", "next": "bye"}


def test_functions_are_forced_and_run_by_the_sdk_itself(saw: dict[str, Any]) -> None:
    assert saw["forcedCall"] == ["get_time"]
    assert saw["automaticCalls"] == (
        "get_weather returned: get_weather of Oslo\nget_weather returned: get_weather of Rome"
    )


def test_files_go_up_whole_and_in_chunks(saw: dict[str, Any]) -> None:
    files = saw["files"]
    assert files["sizes"] == ["4000", "8388613"]
    assert (files["same"], files["state"], files["tokens"], files["listed"]) == (True, "ACTIVE", 1001, 2)
    check_error(files["gone"], 403, "or it may not exist")


def test_caches_are_made_and_used(saw: dict[str, Any]) -> None:
    caches = saw["caches"]
    assert (caches["text"], caches["cached"], caches["longer"], caches["listed"]) == (
        "hello",
        5000,
        True,
        ["Long"],
    )
    check_error(caches["gone"], 403, "CachedContent not found")
    check_error(caches["small"], 400, "Cached content is too small")


def test_embeddings_and_pages_of_models(saw: dict[str, Any]) -> None:
    assert saw["embeddings"] == [16, 16, 3072]
    models = saw["models"]
    assert models["number"] == models["different"] > 10
    assert models["limit"] == 1_048_576


def test_refusals_are_errors_of_its_own_class(saw: dict[str, Any]) -> None:
    check_error(saw["errors"]["wrong"], 400, "function_declarations[0].name: Invalid function name")
    check_error(saw["errors"]["unknown"], 404, "models/gemini-2.0-flash is not found")
    check_error(saw["errors"]["streamed"], 400, "ending with a model turn")


def check_error(error: dict[str, Any], status: int, words: str) -> None:
    assert (error["known"], error["status"]) == (True, status)
    assert words in error["message"]
