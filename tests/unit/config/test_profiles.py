"""Profiles: what they may say, and what is refused before anything runs."""

from __future__ import annotations

import tomllib

import pytest

from dragoman.config import show_config
from dragoman.config.tools import ToolSelector
from tests.unit.config.builders import loaded, refusal

FILE = """
[mcp.servers.github]
command = ["github-server"]

[profiles.team]
tools = ["mcp:github", "mcp:github/get_*", "fs:read_file", "fs:*", "python:mine", "python:mine/add"]
keys = ["sha256:0123456789abcdef"]
models = ["claude-*"]
root = "/srv/project"
allow = ["write_file(docs/**)"]
max_rounds = 5
"""


def test_a_profile_comes_from_the_file() -> None:
    profile = loaded(FILE).config.profiles["team"]
    assert (profile.root, profile.max_rounds, profile.max_seconds) == ("/srv/project", 5, 300.0)
    assert profile.selectors == (
        ToolSelector(kind="mcp", source="github"),
        ToolSelector(kind="mcp", source="github", tool="get_*"),
        ToolSelector(kind="fs", tool="read_file"),
        ToolSelector(kind="fs"),
        ToolSelector(kind="python", source="mine"),
        ToolSelector(kind="python", source="mine", tool="add"),
    )


def test_a_selector_takes_tools_by_pattern() -> None:
    selector = ToolSelector(kind="mcp", source="github", tool="get_*")
    assert selector.matches("get_issue")
    assert not selector.matches("create_issue")


def test_what_is_shown_would_load_again() -> None:
    config = loaded(FILE).config
    shown = show_config(config)
    assert loaded(shown).config.profiles == config.profiles
    assert tomllib.loads(shown)["profiles"]["team"]["keys"] == ["sha256:0123456789abcdef"]


def profile(**fields: object) -> str:
    lines = [f"{name} = {value}" for name, value in fields.items()]
    return "\n".join(["[profiles.x]", *lines])


@pytest.mark.parametrize(
    ("file", "words"),
    [
        (profile(), "my.toml: profiles.x.tools: a profile needs tools"),
        (profile(tools=["bash"]), "profiles.x.tools[0]: 'bash' names no tools"),
        (profile(tools=["mcp:"]), "names no tools"),
        (profile(tools=["fs:read_file/x"]), "names no tools"),
        (profile(tools=["mcp:gitlab"]), "there is no MCP server 'gitlab' in mcp.servers (there are: none)"),
        (profile(tools=["fs:*"]), "profiles.x.root: file tools need a root"),
        (profile(tools=["fs:*"], root="'src'"), "profiles.x.root: must be a whole path, not 'src'"),
        (profile(tools=["python:a"], keys=["my-secret"]), "profiles.x.keys[0]: must be sha256:"),
        (profile(tools=["python:a"], keys=["sha256:0123"]), "must be sha256:"),
        (profile(tols=["python:a"]), "my.toml: profiles.x: unknown key tols; did you mean tools?"),
        (profile(tools=["python:a"], max_rounds=0), "profiles: must be a table of names"),
        ("profiles = 3", "profiles: must be a table of names"),
        ("[profiles]\nx = 3", "profiles: must be a table of names"),
        ("[profiles.'a b']\ntools = ['python:a']", "profiles: must be a table of names"),
    ],
)
def test_mistakes_are_told_with_their_place(file: str, words: str) -> None:
    message = refusal(file)
    assert words in message
    assert "my-secret" not in message
