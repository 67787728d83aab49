"""The fixture in a stranger's project: installed, and nothing else done for it."""

from __future__ import annotations

import subprocess
import sys

import pytest

pytest_plugins = ["pytester"]

AGENT = """
import os
import pytest, requests

def ask(words, system=None):
    url = os.environ["GEMINI_BASE_URL"] + "/v1beta/models/gemini-3.8-flash:generateContent"
    body = {"contents": [{"role": "user", "parts": [{"text": words}]}]}
    if system:
        body["systemInstruction"] = {"parts": [{"text": system}]}
    answer = requests.post(url, json=body, headers={"x-goog-api-key": os.environ["GEMINI_API_KEY"]}, timeout=30)
    return answer.json()["candidates"][0]["content"]["parts"][0]["text"] if answer.ok else answer.status_code
"""
SCRIPT = (
    "otherwise: refuse\nsteps:\n  - when: {says: weather}\n    expect: {system: polite}\n    reply: sunny\n"
)


def run(pytester: pytest.Pytester, tests: str, *options: str) -> pytest.RunResult:
    pytester.makepyfile(test_stranger=AGENT + tests)
    ini = "[pytest]\nasyncio_default_fixture_loop_scope = function\nfilterwarnings = error\naddopts = --strict-markers\n"
    pytester.makeini(ini)
    return pytester.runpytest_subprocess("-p", "no:cacheprovider", *options)


def test_a_followed_script_passes_and_the_environment_is_given_back(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    tests = f"""
SCRIPT = {SCRIPT!r}

@pytest.mark.gemini_script(SCRIPT)
def test_text(gemini_emulator):
    assert ask("weather?", "Be polite.") == "sunny"

@pytest.mark.gemini_script("play.yaml")
def test_file(gemini_emulator):
    assert ask("weather?", "Be polite.") == "sunny"

def test_dict(gemini_emulator, tmp_path):
    gemini_emulator.script({{"steps": [{{"reply": "a"}}]}})
    assert ask("x") == "a"
    assert ask("say b") == "b"

def test_after():
    assert "GEMINI_BASE_URL" not in os.environ
    assert os.environ["GOOGLE_API_KEY"] == "mine"
"""
    pytester.path.joinpath("play.yaml").write_text(SCRIPT)
    monkeypatch.setenv("GOOGLE_API_KEY", "mine")
    monkeypatch.delenv("GEMINI_BASE_URL", raising=False)
    run(pytester, tests).assert_outcomes(passed=4)


def test_google_is_out_of_reach(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    tests = """
from google import genai

def test_client(gemini_emulator):
    assert "GOOGLE_API_KEY" not in os.environ
    with genai.Client() as client:
        assert client.models.generate_content(model="gemini-3.8-flash", contents="say hi").text == "hi"
    assert gemini_emulator.requests[0].headers["x-goog-api-key"] == "emulator"
"""
    for name, value in {
        "GOOGLE_API_KEY": "real",
        "GEMINI_API_KEY": "real",
        "GOOGLE_GENAI_USE_VERTEXAI": "true",
    }.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")
    run(pytester, tests, "-W", "ignore::DeprecationWarning").assert_outcomes(passed=1)


def test_a_script_that_is_not_followed_fails_the_test_itself(pytester: pytest.Pytester) -> None:
    tests = f"""
@pytest.mark.gemini_script({SCRIPT!r})
def test_expectation(gemini_emulator):
    assert ask("weather?") == 400

def test_unused(gemini_emulator):
    gemini_emulator.say("a").say("b")
    assert ask("x") == "a"

@pytest.mark.gemini_script({SCRIPT!r})
def test_unexpected(gemini_emulator):
    ask("rain?")

def test_own_failure(gemini_emulator):
    gemini_emulator.say("a")
    assert ask("something") == "b"
"""
    result = run(pytester, tests)
    result.assert_outcomes(failed=4)
    result.stdout.fnmatch_lines_random(
        [
            "the Gemini emulator's script was not followed:",
            "emulator script: step 1 (line 3): system: expected /polite/, got ''",
            "step 2 was never used",
            "emulator script: no step fits request 1, a generate of gemini-3.8-flash saying 'rain?'; what is left:",
            "  step 1 (line 3): says: expected /weather/, got 'rain?'",
            "*Captured Gemini emulator call*",
            "<generate gemini-3.8-flash 200 'something'>",
        ]
    )
    assert "pytest_plugin.py" not in result.stdout.str()  # nobody wants to read our frames


def test_mistakes_with_the_mark_are_explained(pytester: pytest.Pytester) -> None:
    tests = """
@pytest.mark.gemini_script("nothing.yaml")
def test_no_file(gemini_emulator): ...

@pytest.mark.gemini_script("steps: [{rply: x}]")
def test_wrong_script(gemini_emulator): ...

@pytest.mark.gemini_script("steps: []")
def test_no_fixture(): ...
"""
    result = run(pytester, tests)
    result.assert_outcomes(errors=3)
    result.stdout.fnmatch_lines_random(
        [
            "*nothing.yaml: No such file or directory",
            "script:1: steps[[]0].rply: there is no such key; did you mean reply?",
            "a test marked gemini_script needs the fixture gemini_emulator",
        ]
    )


def test_workers_and_coroutines_have_their_own_emulator(pytester: pytest.Pytester) -> None:
    tests = """
import asyncio

@pytest.mark.parametrize("n", range(6))
def test_n(gemini_emulator, n):
    gemini_emulator.say(str(n))
    assert ask("x") == str(n)
    assert len(gemini_emulator.requests) == 1

@pytest.mark.asyncio
async def test_coroutine(gemini_emulator):
    gemini_emulator.say("a").say("b")
    assert await asyncio.to_thread(ask, "x") == "a"
"""
    result = run(pytester, tests, "-n", "2")
    result.assert_outcomes(passed=6, failed=1)
    result.stdout.fnmatch_lines(["step 2 was never used"])


def test_a_suite_that_does_not_use_it_does_not_pay_for_it() -> None:
    code = (
        "import sys, pytest\nbefore = set(sys.modules)\nimport dragoman.emulator.pytest_plugin\n"
        "print(sorted(set(sys.modules) - before))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "['dragoman', 'dragoman.emulator', 'dragoman.emulator.pytest_plugin']"
