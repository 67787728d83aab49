"""The real Claude Code with an MCP server whose schemas are as hostile as they come."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.clients import INSTALL_S, Claude
from tests.e2e.conftest import CLASSIC, NEW, NEW_GEMINI
from tests.e2e.directives import plan, together, use
from tests.e2e.fake_google import Google
from tests.e2e.hard_schemas import HOSTILE
from tests.e2e.mcp_server import SERVER

pytestmark = [pytest.mark.clients, pytest.mark.timeout(INSTALL_S)]

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("claude", [NEW, NEW_GEMINI, CLASSIC], indirect=True, ids=" ".join)
def test_every_hostile_tool_gets_its_arguments(claude: Claude, google: Google) -> None:
    server = {
        "command": sys.executable,
        "args": ["-m", "tests.e2e.mcp_server"],
        "env": {"PYTHONPATH": str(ROOT)},
    }
    config = claude.cwd / "mcp.json"
    config.write_text(json.dumps({"mcpServers": {SERVER: server}}))
    # The newest client does not declare a tool whose schema is a union at its root.
    rows = {name: row for name, row in HOSTILE.items() if claude.classic or "oneOf" not in row[0]}
    steps = [together(*(use(name[:40], row[number]) for name, row in rows.items())) for number in (1, 2)]
    run = claude.run(
        plan(*steps, say="All done."), "--mcp-config", str(config), env={"ENABLE_TOOL_SEARCH": "false"}
    ).check()
    assert run.result == "All done."
    assert run.names() == [*rows, *rows]
    by_call = {result["tool_use_id"]: _text(result["content"]) for result in run.results()}
    expected = [(name, row[number]) for number in (1, 2) for name, row in rows.items()]
    for call, (name, args) in zip(run.calls(), expected, strict=True):
        assert call["input"] == args
        said = json.dumps(args, sort_keys=True, ensure_ascii=False)
        assert f"got {said}" in by_call[call["id"]], name
    assert google.sentinels() == 0


def _text(content: Any) -> str:
    if isinstance(content, str):
        return content
    return "".join(block.get("text", "") for block in content)
