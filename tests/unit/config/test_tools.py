"""The settings of tools, the agent and MCP servers."""

from __future__ import annotations

import tomllib

import pytest

from dragoman.config import McpServer, show_config
from tests.unit.config.builders import loaded, refusal

FILE = """
[tools]
allow = ["read_file", "run_command(git status*)"]
timeout_s = 5

[agent]
max_cost_usd = 2.5

[mcp.servers.files]
command = ["npx", "files", "/srv"]
env = { TOKEN = "secret-one" }

[mcp.servers.wiki]
url = "https://wiki.example/mcp"
headers = { Authorization = "secret-two" }
enabled = false
"""


def test_tools_agent_and_servers_come_from_the_file() -> None:
    config = loaded(FILE).config
    assert config.tools.allow == ("read_file", "run_command(git status*)")
    assert (config.tools.timeout_s, config.agent.max_cost_usd) == (5.0, 2.5)
    assert config.mcp.servers["files"] == McpServer(
        command=("npx", "files", "/srv"), env={"TOKEN": "secret-one"}
    )
    assert config.mcp.servers["wiki"].enabled is False


def test_showing_the_settings_hides_what_servers_are_given() -> None:
    shown = show_config(loaded(FILE).config)
    assert "secret" not in shown
    servers = tomllib.loads(shown)["mcp"]["servers"]
    assert servers["files"]["env"] == {"TOKEN": "********"}
    assert servers["wiki"]["headers"] == {"Authorization": "********"}
    assert servers["files"]["command"] == ["npx", "files", "/srv"]


@pytest.mark.parametrize(
    ("file", "words"),
    [
        ("[mcp.servers.x]\n", "my.toml: mcp.servers.x: a server has either a command or a url"),
        ("[mcp.servers.x]\ncommand=['a']\nurl='https://b'", "either a command or a url"),
        ("[mcp.servers.x]\ncommand=['a']\nheaders={a='b'}", "headers go to a url"),
        ("[mcp.servers.x]\nurl='https://b'\nenv={a='b'}", "env goes to a command"),
        ("[mcp.servers.'a b']\ncommand=['a']", "mcp.servers: must be a table of names"),
        (
            "[mcp.servers.x]\ncomand=['a']",
            "my.toml: mcp.servers.x: unknown key comand; did you mean command?",
        ),
        ("[tools]\naudit='all'", "tools.audit: must be one of digest, full, off"),
        ("[tools]\ntimeout_s=0", "tools.timeout_s: must be a number above 0"),
        ("[agent]\nmax_cost_usd=-1", "must be a number of at least 0"),
    ],
)
def test_wrong_settings_are_refused_with_the_place(file: str, words: str) -> None:
    assert words in refusal(file)


def test_a_refused_server_does_not_print_its_token() -> None:
    file = "[mcp.servers.x]\nenv={TOKEN='secret-one'}\ncommand='a'"
    assert "secret-one" not in refusal(file)
    assert "secret-one" not in refusal(
        None, {"DRAGOMAN_MCP_SERVERS": '{"x":{"env":{"T":"secret-one"},"command":1}}'}
    )
