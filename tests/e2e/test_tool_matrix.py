"""Every tool of the specification with the schemas of the real clients, streamed and whole."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from anthropic import Anthropic

from tests.e2e.fake_google import Google
from tests.e2e.record_schemas import VERSIONS, load_tools
from tests.e2e.sdk_rounds import MODES, Mode, play_round

Args = Mapping[str, Any]

_TRICKY = 'tab\there, "quotes", back\\slash, \\n not a newline,\nnewline, ünïcödé 🌹, <b>&amp;</b>, ${x} {y}'

CALLS: dict[str, tuple[Args, Args]] = {
    "TodoWrite": (
        {"todos": [{"content": "Write tests", "status": "in_progress", "activeForm": "Writing tests"}]},
        {
            "todos": [
                {"content": "Write tests", "status": "completed", "activeForm": "Writing tests"},
                {"content": _TRICKY, "status": "pending", "activeForm": "x"},
            ]
        },
    ),
    "Task": (
        {"description": "Find it", "prompt": "Look everywhere.", "subagent_type": "general-purpose"},
        {"description": "", "prompt": _TRICKY, "subagent_type": "Explore"},
    ),
    "Agent": (
        {"description": "Find it", "prompt": "Look everywhere.", "run_in_background": False},
        {"description": "Think", "prompt": _TRICKY, "model": "haiku", "isolation": "worktree"},
    ),
    "Bash": (
        {"command": "ls -la | grep 'x y'", "description": "List", "timeout": 1500.5},
        {"command": _TRICKY, "run_in_background": True},
    ),
    "Read": (
        {"file_path": "/etc/hosts", "offset": 0, "limit": 9007199254740991},
        {"file_path": "/tmp/a b/ü.txt"},
    ),
    "Edit": (
        {"file_path": "/a.py", "old_string": "a\\nb", "new_string": "", "replace_all": True},
        {"file_path": "/a.py", "old_string": "    x = '\\t'\n", "new_string": _TRICKY},
    ),
    "Write": (
        {"file_path": "/a.json", "content": '{"type": "object", "pattern": "^a$"}'},
        {"file_path": "/b.txt", "content": _TRICKY * 200},
    ),
    "Glob": ({"pattern": "**/*.py"}, {"pattern": "src/{a,b}/[!c]?.ts", "path": "/work"}),
    "Grep": (
        {
            "pattern": r"^\s*def \w+\(",
            "path": "/work",
            "glob": "*.{py,pyi}",
            "output_mode": "content",
            "-A": 2,
            "-B": 0,
            "-n": True,
            "-i": False,
            "type": "py",
        },
        {"pattern": "log.*Error", "-C": 3, "head_limit": 10, "multiline": True},
    ),
    "AskUserQuestion": (
        {
            "questions": [
                {
                    "question": "Which colour?",
                    "header": "Colour",
                    "options": [
                        {"label": "Red", "description": "like roses"},
                        {"label": "Blue", "description": "", "preview": "```\n■\n```"},
                    ],
                    "multiSelect": False,
                }
            ]
        },
        {
            "questions": [
                {
                    "question": "More?",
                    "header": "More",
                    "options": [{"label": letter, "description": _TRICKY} for letter in "abcd"],
                    "multiSelect": True,
                }
            ],
            "answers": {"Which colour?": "Red", "type": "x"},
            "annotations": {"Which colour?": {"notes": "why not"}},
            "metadata": {"source": "test"},
        },
    ),
    "WebFetch": (
        {"url": "https://example.com/a?b=c&d=%20#e", "prompt": "Summarise."},
        {"url": "http://localhost:1/", "prompt": _TRICKY},
    ),
    "WebSearch": (
        {"query": "gemini", "allowed_domains": ["example.com", "example.org"]},
        {"query": _TRICKY, "blocked_domains": []},
    ),
    "MultiEdit": (
        {"file_path": "/a", "edits": [{"old_string": "a", "new_string": "b"}]},
        {"file_path": "/a", "edits": [{"old_string": _TRICKY, "new_string": "", "replace_all": True}] * 3},
    ),
    "TaskCreate": (
        {"subject": "One", "description": "First"},
        {"subject": "Two", "description": _TRICKY, "metadata": {"deep": {"er": [1, None, True, "x"]}}},
    ),
    "TaskUpdate": (
        {"taskId": "1", "status": "deleted"},
        {"taskId": "1", "status": "completed", "addBlocks": ["2"]},
    ),
    "SendMessage": ({"to": "agent", "message": ""}, {"to": "x", "message": _TRICKY, "summary": "s"}),
    "Workflow": (
        {"script": "return 1", "args": {"any": ["thing", 1, {"type": "x"}]}, "title": "T"},
        {"name": "n", "args": "a string", "resumeFromRunId": "wf_abc-123"},
    ),
    "CronList": ({}, {}),
}
#: The matrix of the specification; the other rows are what real clients have beside it.
REQUIRED = "TodoWrite Task Bash Read Edit Write Glob Grep AskUserQuestion WebFetch WebSearch".split()

TOOLS = {version: load_tools(version) for version in VERSIONS}
CASES = [(version, tool["name"]) for version in VERSIONS for tool in TOOLS[version] if tool["name"] in CALLS]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(("version", "name"), CASES, ids=[f"{name}-{version}" for version, name in CASES])
def test_full_round(client: Anthropic, google: Google, version: str, name: str, mode: Mode) -> None:
    play_round(client, mode, TOOLS[version], name, CALLS[name])
    assert google.declared() == [tool["name"] for tool in TOOLS[version]]
    method = "streamGenerateContent" if mode == "stream" else "generateContent"
    assert google.methods() == [method] * 3
    assert google.sentinels() == 0


def test_the_matrix_is_complete() -> None:
    assert set(REQUIRED) <= {name for _, name in CASES}
