"""The settings of commands reach the tool that runs them."""

from __future__ import annotations

from pathlib import Path

import pytest

from dragoman.agent.toolbox import open_toolbox
from dragoman.config.tools import ToolsConfig
from dragoman.ir import Text, ToolCall


async def run(tmp_path: Path, **settings: object) -> tuple[str, tuple[str, ...]]:
    root, home = tmp_path / "root", tmp_path / "home"
    root.mkdir()
    home.mkdir(mode=0o700)
    config = ToolsConfig(run_command=True, allow=("run_command(*)",), **settings)  # type: ignore[arg-type]
    async with open_toolbox(root=root, home=home, settings=config, servers={}) as toolbox:
        call = ToolCall(id="1", name="run_command", args=b'{"command":["env"]}')
        result = await toolbox.handler.execute(call)
        text = "".join(part.text for part in result.content if isinstance(part, Text))
        return text, toolbox.warnings


async def test_commands_get_the_variables_they_were_promised_and_no_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MY_SETTING", "visible")
    monkeypatch.setenv("GEMINI_API_KEY", "AIza-secret")
    text, remarks = await run(tmp_path, isolation="off", command_env=("MY_SETTING",))
    assert "MY_SETTING=visible" in text
    assert "AIza-secret" not in text
    assert any("switched off" in remark for remark in remarks)


async def test_without_a_promise_there_is_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_SETTING", "visible")
    text, _ = await run(tmp_path, isolation="off")
    assert "PATH=" in text
    assert "MY_SETTING" not in text


async def test_a_project_without_commands_has_no_such_tool(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir(mode=0o700)
    async with open_toolbox(root=tmp_path, home=home, settings=ToolsConfig(), servers={}) as toolbox:
        assert "run_command" not in toolbox.registry.names()
