"""The real Claude Code works through the gateway: tools alone, together, failing, one after another, nested."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest

from tests.e2e.clients import INSTALL_S, Claude
from tests.e2e.directives import plan, together, use
from tests.e2e.fake_google import KEY, Google
from tests.e2e.sample_files import make_pdf, make_png

pytestmark = [pytest.mark.clients, pytest.mark.timeout(INSTALL_S)]


def test_one_tool(claude: Claude, google: Google) -> None:
    run = claude.run(use("Bash", {"command": "echo one > made.txt; cat made.txt"})).check()
    assert run.names() == ["Bash"]
    assert (claude.cwd / "made.txt").read_text() == "one\n"
    assert "Bash returned: one" in run.result
    assert set(google.methods()) == {"streamGenerateContent"}
    assert google.keys() == {KEY}
    assert google.sentinels() == 0


def test_parallel_tools(claude: Claude, google: Google) -> None:
    (claude.cwd / "b.txt").write_text("content of b\n")
    run = claude.run(
        together(
            use("Bash", {"command": "sleep 0.5; echo slow"}),
            use("Read", {"file_path": str(claude.cwd / "b.txt")}),
            use("Bash", {"command": "echo fast"}),
        )
    ).check()
    assert run.names() == ["Bash", "Read", "Bash"]
    lines = run.result
    assert (
        lines.index("Bash returned: slow") < lines.index("content of b") < lines.index("Bash returned: fast")
    )
    assert google.sentinels() == 0
    last = google.requests()[-1]["contents"]
    responses = [part["functionResponse"]["name"] for part in last[-1]["parts"] if "functionResponse" in part]
    assert responses == ["Bash", "Read", "Bash"]


def test_failing_tools_reach_the_model(claude: Claude, google: Google) -> None:
    run = claude.run(
        plan(
            use("Bash", {"command": "echo broken >&2; exit 1"}),
            use("Read", {"file_path": str(claude.cwd / "missing.txt")}),
            use("Bash", {"command": "echo recovered"}),
        )
    ).check()
    assert run.names() == ["Bash", "Read", "Bash"]
    assert [bool(result.get("is_error")) for result in run.results()] == [True, True, False]
    assert "Bash failed: " in run.result
    assert "broken" in run.result
    assert "Read failed: " in run.result
    assert "does not exist" in run.result
    assert "Bash returned: recovered" in run.result
    assert google.sentinels() == 0


def test_five_steps_one_after_another(claude: Claude, google: Google) -> None:
    steps = [use("Bash", {"command": f"echo step {number} | tee -a log.txt"}) for number in range(1, 6)]
    run = claude.run(plan(*steps)).check()
    assert run.names() == ["Bash"] * 5
    assert (claude.cwd / "log.txt").read_text() == "".join(f"step {number}\n" for number in range(1, 6))
    for number in range(1, 6):
        assert f"Bash returned: step {number}" in run.result
    assert google.sentinels() == 0


def test_every_request_continues_the_last_one(claude: Claude, google: Google) -> None:
    """Google caches by prefix: what was sent once is sent again byte for byte, also in the next turn."""
    claude.run(plan(use("Bash", {"command": "echo one"}), use("Bash", {"command": "echo two"}))).check()
    claude.run(use("Bash", {"command": "echo three"}), "--continue").check()
    requests = [request for request in google.requests() if request.get("tools")]
    assert len(requests) == 5
    for before, after in pairwise(requests):
        assert after["systemInstruction"] == before["systemInstruction"]
        assert after["tools"] == before["tools"]
        assert after["contents"][: len(before["contents"])] == before["contents"]
    assert "x-anthropic-billing-header" not in str(requests)


def test_words_before_the_calls_and_a_text_answer(claude: Claude, google: Google) -> None:
    prompt = 'say "Let me look." then ' + plan(use("Bash", {"command": "true"}), say="All is well.")
    run = claude.run(prompt).check()
    assert run.result == "All is well."
    assert google.sentinels() == 0


def test_image_read(claude: Claude, google: Google) -> None:
    picture = claude.cwd / "red.png"
    picture.write_bytes(make_png(width=24, height=16))
    run = claude.run(use("Read", {"file_path": str(picture)})).check()
    assert run.names() == ["Read"]
    assert "image/png" in run.result
    assert google.sentinels() == 0


def test_pdf_read(claude: Claude, google: Google) -> None:
    paper = claude.cwd / "paper.pdf"
    paper.write_bytes(make_pdf())
    run = claude.run(use("Read", {"file_path": str(paper)})).check()
    assert run.names() == ["Read"]
    assert "application/pdf" in run.result
    assert google.sentinels() == 0


def test_sub_agent(claude: Claude, google: Google) -> None:
    name, background = ("Task", {}) if claude.classic else ("Agent", {"run_in_background": False})
    look = use("Bash", {"command": "echo from below > below.txt; cat below.txt"})
    args = {"description": "look below", "subagent_type": "general-purpose", **background}
    args["prompt"] = plan(look, say="The cellar is dry.")
    run = claude.run(use(name, args)).check()
    assert run.names() == [name]
    assert [call["name"] for call in run.calls(sub=True)] == ["Bash"]
    assert (claude.cwd / "below.txt").read_text() == "from below\n"
    assert f"{name} returned: " in run.result
    assert "The cellar is dry." in run.result
    assert google.sentinels() == 0


def test_files_are_written_edited_and_read(claude: Claude, google: Google) -> None:
    path = str(claude.cwd / "poem.txt")
    text = 'roses are "red"\n\tviolets\\are blue\nünïcödé 🌹\n'
    run = claude.run(
        plan(
            use("Write", {"file_path": path, "content": text}),
            use("Edit", {"file_path": path, "old_string": "violets\\are", "new_string": "violets are"}),
            use("Read", {"file_path": path}),
        )
    ).check()
    assert run.names() == ["Write", "Edit", "Read"]
    assert Path(path).read_text() == text.replace("violets\\are", "violets are")
    assert not any(result.get("is_error") for result in run.results())
    assert "ünïcödé 🌹" in run.result
    assert google.sentinels() == 0


def test_web_search(claude: Claude, google: Google) -> None:
    """The client asks for a search in its own request; Google's results come back with links (known problem K1)."""
    search = use("WebSearch", {"query": "weather in Cyrene"})
    load = [] if claude.classic else [use("ToolSearch", {"query": "select:WebSearch"})]
    run = claude.run(plan(*load, search)).check()
    assert run.names()[-1] == "WebSearch"
    found = str(run.results()[-1]["content"])
    assert "weather in Cyrene" in found
    assert (
        '{"title":"example.com","url":"https://vertexaisearch.cloud.google.com/grounding-api-redirect/'
        in found
    )
    assert '{"title":"example.org",' in found
    assert not any(result.get("is_error") for result in run.results())
    (asked,) = [request for request in google.requests() if {"googleSearch": {}} in request.get("tools", ())]
    assert asked["toolConfig"] == {"includeServerSideToolInvocations": True}
    assert "at most 8 time(s)" in str(asked["systemInstruction"])


def test_two_sub_agents_at_once(claude: Claude, google: Google) -> None:
    name, background = ("Task", {}) if claude.classic else ("Agent", {"run_in_background": False})
    tasks = []
    for word in ("alpha", "beta"):
        look = plan(
            use("Bash", {"command": f"echo {word} > {word}.txt"}),
            use("Read", {"file_path": str(claude.cwd / f"{word}.txt")}),
            say=f"Agent {word} is done.",
        )
        args = {"description": word, "prompt": look, "subagent_type": "general-purpose", **background}
        tasks.append(use(name, args))
    run = claude.run(together(*tasks)).check()
    assert sorted(call["name"] for call in run.calls(sub=True)) == ["Bash", "Bash", "Read", "Read"]
    assert "Agent alpha is done." in run.result
    assert "Agent beta is done." in run.result
    assert google.sentinels() == 0


def test_a_long_output_and_a_long_input(claude: Claude, google: Google) -> None:
    lines = "\n".join(f"line {number} of a long file, with ünïcödé" for number in range(800))
    path = claude.cwd / "long.txt"
    run = claude.run(
        plan(
            use("Write", {"file_path": str(path), "content": lines}),
            use("Bash", {"command": f"head -c 20000 {path}"}),
            say="Long enough.",
        )
    ).check()
    assert run.result == "Long enough."
    assert path.read_text() == lines
    assert google.sentinels() == 0
