"""Other agents with the MCP server whose schemas are as hostile as they come: every argument arrives."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.e2e.agents import MODEL, Place, copilot, install_agent, opencode
from tests.e2e.clients import INSTALL_S
from tests.e2e.directives import plan, together, use
from tests.e2e.fake_google import Google
from tests.e2e.gateway import GATEWAY_KEY, Gateway
from tests.e2e.hard_schemas import HOSTILE
from tests.e2e.mcp_server import SERVER, mcp_name
from tests.e2e.recording_proxy import Tap, recording_proxy

pytestmark = [pytest.mark.clients, pytest.mark.timeout(INSTALL_S)]

ARGS = ["-m", "tests.e2e.mcp_server"]
ENV = {"PYTHONPATH": str(Path(__file__).parents[2])}


@pytest.fixture
def tap(own_gateway: Gateway) -> Iterator[Tap]:
    """On a gateway of its own, which learns from refusals."""
    with recording_proxy(own_gateway.url) as tap:
        yield tap


def codex_with_server(place: Place, url: str, prompt: str) -> None:
    place.write_home(
        ".codex/config.toml",
        f"""model = "{MODEL}"
model_provider = "gateway"
features = {{plugins = false, apps = false, remote_plugin = false}}
[model_providers.gateway]
name = "gateway"
base_url = "{url}/v1"
wire_api = "responses"
env_key = "GATEWAY_KEY"
[mcp_servers.{SERVER}]
command = "{sys.executable}"
args = {json.dumps(ARGS)}
env = {{PYTHONPATH = "{ENV["PYTHONPATH"]}"}}
""",
    )
    flags = ["exec", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox"]
    place.run([str(install_agent("codex")), *flags, prompt], {"GATEWAY_KEY": GATEWAY_KEY}).check()


def opencode_with_server(place: Place, url: str, prompt: str) -> None:
    server = {"type": "local", "command": [sys.executable, *ARGS], "environment": ENV}
    place.write_home(".config/opencode/opencode.json", {"mcp": {SERVER: server}})
    opencode(place, url, "gemini", prompt).check()


def copilot_with_server(place: Place, url: str, prompt: str) -> None:
    server = {"type": "local", "command": sys.executable, "args": ARGS, "env": ENV, "tools": ["*"]}
    place.write_home(".copilot/mcp-config.json", {"mcpServers": {SERVER: server}})
    copilot(place, url, "chat", prompt).check()


@pytest.mark.parametrize(
    ("run", "name_of"),
    [
        (codex_with_server, lambda name: f"mcp__{SERVER}.{name.replace('-', '_')}"),
        (opencode_with_server, lambda name: f"{SERVER}_{name}"),
        (copilot_with_server, lambda name: f"{SERVER}-{name}"),
    ],
    ids=["codex responses", "opencode gemini", "copilot chat"],
)
def test_every_hostile_tool_gets_its_arguments(
    tmp_path: Path,
    tap: Tap,
    google: Google,
    run: Callable[[Place, str, str], None],
    name_of: Callable[[str], str],
) -> None:
    names = {name: name_of(mcp_name(name))[:40] for name in HOSTILE}
    steps = [together(*(use(names[name], row[number]) for name, row in HOSTILE.items())) for number in (1, 2)]
    run(Place(tmp_path), tap.url, plan(*steps, say="All done."))
    assert not tap.refused(), "\n".join(tap.refused())
    last = max(google.requests(), key=lambda request: len(request["contents"]))
    said = [
        str(part["functionResponse"]["response"])
        for content in last["contents"]
        for part in content["parts"]
        if "functionResponse" in part
    ]
    expected = [row[number] for number in (1, 2) for row in HOSTILE.values()]
    for text, args in zip(said, expected, strict=True):
        wanted = json.dumps(args, sort_keys=True, ensure_ascii=False)
        plain = text.replace('\\\\"', '"').replace('\\"', '"').replace("\\\\", "\\")
        assert f"got {wanted}" in plain or f"got {wanted}" in text
    assert google.sentinels() == 0
