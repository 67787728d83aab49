"""Claude Code in Bedrock mode: the real tools through InvokeModel, signed, with a bearer token, or by a plain gateway."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.e2e.clients import INSTALL_S, Claude, Run
from tests.e2e.directives import plan, together, use
from tests.e2e.fake_google import Google
from tests.e2e.gateway import GATEWAY_KEY
from tests.e2e.recording_proxy import Tap
from tests.e2e.sample_files import make_png

pytestmark = [pytest.mark.clients, pytest.mark.timeout(INSTALL_S)]

VERSION = "2.1.325"
MODEL = "us.anthropic.claude-sonnet-4-5-20250929-v1:0"
#: way to log in -> variables; with none it cannot ask for the inference profiles, and does without.
LOGINS: dict[str, Callable[[str], dict[str, str]]] = {
    "sigv4": lambda key: {"AWS_ACCESS_KEY_ID": "gateway", "AWS_SECRET_ACCESS_KEY": key},
    "bearer": lambda key: {"AWS_BEARER_TOKEN_BEDROCK": key},
    "none": lambda key: {"CLAUDE_CODE_SKIP_BEDROCK_AUTH": "1", "ANTHROPIC_AUTH_TOKEN": key},
}


class BedrockClaude(Claude):
    """Claude Code with nothing but Bedrock's variables."""

    def __init__(self, *, login: str, model: str, folder: Path, url: str, key: str = GATEWAY_KEY) -> None:
        super().__init__(version=VERSION, model=model, folder=folder, url="", key="")
        self._login = {
            "CLAUDE_CODE_USE_BEDROCK": "1",
            "ANTHROPIC_BEDROCK_BASE_URL": url,
            "AWS_REGION": "us-east-1",
        }
        self._login |= LOGINS[login](key)

    def _env(self) -> dict[str, str]:
        plain = {name: value for name, value in super()._env().items() if value}
        return plain | self._login


@pytest.fixture(
    params=[
        ("sigv4", MODEL),
        ("bearer", "gemini-3.1-pro-preview"),
        ("none", "opus"),
    ],
    ids="-".join,
)
def claude(request: pytest.FixtureRequest, tmp_path: Path, tap: Tap) -> Iterator[BedrockClaude]:
    """All that the gateway refuses is the list of profiles to one who shows no key for it."""
    login, model = request.param
    yield BedrockClaude(login=login, model=model, folder=tmp_path, url=tap.url)
    refused = [one for one in tap.refused() if login != "none" or "/inference-profiles" not in one]
    assert not refused, "\n".join(refused)
    assert {path.rpartition("/")[2] for path in tap.paths()} <= {
        "inference-profiles",
        "invoke",
        "invoke-with-response-stream",
    }


def failed(run: Run) -> list[bool]:
    return [bool(result.get("is_error")) for result in run.results()]


def test_tools_one_after_another_together_and_failing(claude: BedrockClaude, google: Google) -> None:
    file = claude.cwd / "a.txt"
    run = claude.run(
        plan(
            use("Write", {"file_path": str(file), "content": "one\n"}),
            together(
                use("Read", {"file_path": str(file)}),
                use("Bash", {"command": "echo ran > b.txt; cat b.txt"}),
            ),
            use("Read", {"file_path": str(claude.cwd / "missing.txt")}),
            use("Edit", {"file_path": str(file), "old_string": "one", "new_string": "two"}),
        )
    ).check()
    assert run.names() == ["Write", "Read", "Bash", "Read", "Edit"]
    assert failed(run) == [False, False, False, True, False]
    assert (file.read_text(), (claude.cwd / "b.txt").read_text()) == ("two\n", "ran\n")
    assert "Bash returned: ran" in run.result
    assert "Read failed: " in run.result
    assert google.sentinels() == 0


def test_a_picture_a_sub_agent_and_words(claude: BedrockClaude, google: Google) -> None:
    (claude.cwd / "red.png").write_bytes(make_png(width=24, height=16))
    look = plan(use("Bash", {"command": "echo from below > below.txt"}), say="The cellar is dry.")
    task = {"description": "look below", "subagent_type": "general-purpose", "run_in_background": False}
    run = claude.run(
        plan(use("Agent", {**task, "prompt": look}), use("Read", {"file_path": str(claude.cwd / "red.png")}))
    ).check()
    assert run.names() == ["Agent", "Read"]
    assert [call["name"] for call in run.calls(sub=True)] == ["Bash"]
    assert (claude.cwd / "below.txt").read_text() == "from below\n"
    assert "The cellar is dry." in run.result
    assert "image/png" in run.result
    assert google.sentinels() == 0


def test_a_full_context_is_compacted_and_the_run_goes_on(tmp_path: Path, tap: Tap, google: Google) -> None:
    claude = BedrockClaude(login="sigv4", model=MODEL, folder=tmp_path, url=tap.url)
    claude.run(plan(*(use("Bash", {"command": f"echo {number}"}) for number in range(4)))).check()
    google.overflow_next()
    run = claude.run(use("Bash", {"command": "echo after > after.txt"}), "--continue").check()
    assert google.all_refused()
    assert [event.get("subtype") for event in run.events].count("compact_boundary") == 1
    assert (claude.cwd / "after.txt").read_text() == "after\n"
    assert len(tap.refused()) == 1
    assert google.sentinels() == 0


@pytest.mark.parametrize("login", LOGINS)
def test_a_wrong_key_is_told(tmp_path: Path, tap: Tap, login: str) -> None:
    claude = BedrockClaude(
        login=login, model=MODEL, folder=tmp_path, url=tap.url, key="not-the-key-000000000"
    )
    run = claude.run("say hello", env={"CLAUDE_CODE_MAX_RETRIES": "0"})
    print(run.code, run.result, tap.paths())
    assert run.code == 1
    assert "gateway key" in run.result
