"""Free words: what they ask for, in which steps, and what they must never set in motion."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dragoman.emulator.model.intents import read_intents
from dragoman.emulator.model.tool_selection import is_read_only
from dragoman.emulator.parsed_request import DeclaredFunction

Calls = list[list[tuple[str, Any]]]
TEXT = {"type": "string"}
RESULT = "what came back"


def function(name: str, description: str = "", **named: Any) -> DeclaredFunction:
    return DeclaredFunction(
        name, description, {"type": "object", "properties": named, "required": list(named)}
    )


TOOLS = [
    function("get_weather", "The current weather of a city", city=TEXT),
    function("get_time", "What time it is"),
    function("list_files", "List the files of a folder", path=TEXT),
    function("read_file", "Reads and returns the content of a specified file", file_path=TEXT),
    function("read_many", "", paths={"type": "array", "items": TEXT}),
    function("write_file", "Writes content to a file", file_path=TEXT, content=TEXT),
    function("edit_file", "Changes a file", file_path=TEXT, old_string=TEXT, new_string=TEXT),
    function("run_shell_command", "Runs a command", command=TEXT),
    function("send_message", "Sends a message", to=TEXT, message=TEXT),
    function("delete_file", "Deletes a file", file_path=TEXT),
    function("compare_files", "Differences between two files", first_path=TEXT, second_path=TEXT),
    function("web_fetch", "Fetches a web page", url=TEXT, prompt=TEXT),
]


def asked(words: str, tools: list[DeclaredFunction] | None = None) -> Calls:
    """The calls of each step, as if every step had returned RESULT."""
    steps = read_intents(words, TOOLS if tools is None else tools)
    return [[(wish.function.name, wish.arguments(RESULT)) for wish in step] for step in steps]


def weather(*cities: str) -> list[tuple[str, Any]]:
    return [("get_weather", {"city": city}) for city in cities]


def read(*paths: str) -> list[tuple[str, Any]]:
    return [("read_file", {"file_path": path}) for path in paths]


TOGETHER: dict[str, list[tuple[str, Any]]] = {
    "what is the weather in Paris and in London": weather("Paris", "London"),
    "What is the weather in Paris, London and New York?": weather("Paris", "London", "New York"),
    "compare the weather of Rome & Oslo": weather("Rome", "Oslo"),
    "read a.txt and b.txt": read("a.txt", "b.txt"),
    "Please read `a.txt`, `b/c.md` and /etc/hosts": read("a.txt", "b/c.md", "/etc/hosts"),
    "list the files in /src and read README.md": [("list_files", {"path": "/src"}), *read("README.md")],
    "what is the weather in Oslo and what time is it?": [*weather("Oslo"), ("get_time", {})],
    "compare files a.txt and b.txt": [("compare_files", {"first_path": "a.txt", "second_path": "b.txt"})],
    'read "then.txt and then"': read("then.txt"),
    "list the files": [("list_files", {"path": "."})],
}


@pytest.mark.parametrize(("words", "calls"), TOGETHER.items(), ids=TOGETHER.keys())
def test_what_is_asked_for_together_is_called_together(words: str, calls: list[tuple[str, Any]]) -> None:
    assert asked(words) == [calls]


def test_what_a_schema_requires_may_be_nonsense() -> None:
    """Google takes such a schema, so its tool may be asked for."""
    odd = DeclaredFunction(
        "find", "", {"type": "object", "properties": {"path": TEXT}, "required": [{"a": 1}, [2], 3, "path"]}
    )
    assert asked("find a.txt", [odd]) == [[("find", {"path": "a.txt"})]]


def test_a_list_of_paths_for_one_function_stays_a_list() -> None:
    only = [tool for tool in TOOLS if tool.name == "read_many"]
    assert asked("read many: a.txt, b.txt and c.txt", only) == [
        [("read_many", {"paths": ["a.txt", "b.txt", "c.txt"]})]
    ]


def write(path: str, content: str = RESULT) -> list[tuple[str, Any]]:
    return [("write_file", {"file_path": path, "content": content})]


PLANS: dict[str, Calls] = {
    "read notes.txt then write summary.txt": [read("notes.txt"), write("summary.txt")],
    "Read notes.txt and write it to summary.txt.": [read("notes.txt"), write("summary.txt")],
    "first list the files, then read README.md, then tell me what it says": [
        [("list_files", {"path": "."})],
        read("README.md"),
    ],
    "List the files in /a and /b. Then read /a/x.md. Finally write all.txt": [
        [("list_files", {"path": "/a"}), ("list_files", {"path": "/b"})],
        read("/a/x.md"),
        write("all.txt"),
    ],
    "run `ls -la`": [[("run_shell_command", {"command": "ls -la"})]],
    "run `ls` then read a.txt and report": [[("run_shell_command", {"command": "ls"})], read("a.txt")],
    'write "hello, then goodbye" to notes.txt': [write("notes.txt", "hello, then goodbye")],
    'please write the file "my.txt" with "x"': [write("my.txt", "x")],
    'edit a.txt: replace "x" with "y"': [
        [("edit_file", {"file_path": "a.txt", "old_string": "x", "new_string": "y"})]
    ],
    'send "hi" to bob@x.org': [[("send_message", {"to": "bob@x.org", "message": "hi"})]],
    'write "a" to a.txt and write "b" to b.txt': [write("a.txt", "a"), write("b.txt", "b")],
}


@pytest.mark.parametrize(("words", "steps"), PLANS.items(), ids=PLANS.keys())
def test_a_plan_is_read_step_by_step(words: str, steps: Calls) -> None:
    assert asked(words) == steps


#: Nothing that acts may come of any of these.
HOSTILE = [
    # negations, anywhere and in every spelling
    "do not run `rm -rf /`",
    "don't run `ls`",
    "dont run `ls`",
    'never write "x" to a.txt',
    "read a.txt, then run `ls`, but do not delete anything",
    "run `ls` without side effects",
    "run `ls`? No!",
    "avoid this: run `ls`",
    'read a.txt instead of this: write "x" to a.txt',
    'write "x" to a.txt. On second thought, cancel that',
    "run `ls` only if it is safe",
    "run `ls`, please stop",
    'write "do not touch" to a.txt',
    # questions and conditions
    "what happens if I run `rm -rf /`?",
    "can you run `ls`?",
    'should I write "x" to a.txt',
    "how do I run `ls`",
    "run `ls` when the build is done",
    'if the file is missing write "x" to a.txt',
    # talk about acting
    "explain run `rm -rf /`",
    "Explain this:\nrun `rm -rf /`",
    "Explain the weather in Oslo\nrun `rm -rf /`",
    "What is the weather in Oslo\nrun `ls`",
    "My colleague wrote\nrun `rm -rf /`",
    "tell me how to\nrun `ls`",
    "tell me about it\nrun `ls`",
    "He said: run `ls`",
    "User: run `ls`",
    "> run `ls`",
    "- run `ls`",
    "1. run `ls`",
    "# Steps\nrun `ls`",
    "translate to French: run `ls`",
    "the script will run `ls`",
    "I ran `ls` and it failed",
    "run `ls` is what he typed",
    "run `ls` was a mistake",
    "running `ls` takes long",
    "```\nrun `ls`\n```",
    'quote "run `ls`"',
    'read "run `ls`"',
    # an order, and then something that was not understood
    "run `ls`\nwas in a mail I got",
    "run `ls` then laugh",
    'write "x" to a.txt. That is the title of a song',
    "run `ls`, then what is the weather in Oslo",
    # something missing, something spare, something guessed
    "run ls",
    "run",
    "run the command",
    "run `ls` and `pwd`",
    "run `ls` in the background",
    "run `ls` as root with 5 retries",
    "write a.txt",
    "write hello to a.txt",
    'write "x"',
    'write "x" to a.txt and b.txt',
    'write "x" "y" to a.txt',
    'write "x" to "some place"',
    'send "hi" to "bob"',
    'send "hi"',
    'edit a.txt with "x"',
    "write a.txt then read a.txt",
    # what cannot be undone needs a directive
    "delete a.txt",
    "delete file a.txt",
    "remove a.txt",
    # another language
    "führe `ls` nicht aus",
    "n'exécute pas `ls`, run `ls`",
    "no corras, run `ls`",
    # too long to be a plain order
    "run `ls` " + "please " * 80,
]


@pytest.mark.parametrize("words", HOSTILE)
def test_free_words_that_are_no_plain_order_never_act(words: str) -> None:
    acting = {tool.name for tool in TOOLS if not is_read_only(tool)}
    assert acting == {"write_file", "edit_file", "run_shell_command", "send_message", "delete_file"}
    assert [name for step in asked(words) for name, _ in step if name in acting] == []


SCHEMAS = Path(__file__).parents[3] / "e2e" / "schemas"


def claude_code() -> list[DeclaredFunction]:
    loaded = json.loads(max(SCHEMAS.glob("*.json")).read_text("utf-8"))
    tools = loaded if isinstance(loaded, list) else loaded["tools"]
    return [DeclaredFunction(tool["name"], tool["description"], tool["input_schema"]) for tool in tools]


@pytest.mark.parametrize("words", HOSTILE)
def test_the_tools_of_a_real_agent_are_as_safe(words: str) -> None:
    calls = [name for step in asked(words, claude_code()) for name, _ in step]
    assert set(calls) <= {"Read", "Glob", "Grep", "WebFetch", "WebSearch", "ListAgents"}


def test_a_real_agent_can_be_given_a_plain_order() -> None:
    assert asked('write "hello" to /tmp/x.txt', claude_code()) == [
        [("Write", {"file_path": "/tmp/x.txt", "content": "hello"})]
    ]


@pytest.mark.parametrize(
    "name", ["add_item", "buy_stock", "modify_file", "book_flight", "mcp__shop__order_pizza", "CancelOrder"]
)
def test_what_changes_things_is_not_harmless_by_another_name(name: str) -> None:
    assert not is_read_only(function(name, "", item=TEXT))


@pytest.mark.parametrize("name", ["get_order", "list_books", "read_record", "find_tag"])
def test_nouns_are_no_deeds(name: str) -> None:
    assert is_read_only(function(name, "", tag=TEXT))


def test_two_functions_that_would_do_are_none() -> None:
    twins = [function("run_here", "", command=TEXT), function("run_there", "", command=TEXT)]
    assert asked("run `ls`", twins) == []


def test_what_another_function_returned_is_never_run() -> None:
    assert asked("read a.txt then run it") == [read("a.txt")]


def test_a_forbidden_look_is_not_taken() -> None:
    assert asked("don't read a.txt") == []
    assert asked("read a.txt, then do not read b.txt") == [read("a.txt")]


PIECES = st.sampled_from(
    [
        *TOGETHER,
        *PLANS,
        *HOSTILE[:44],
        "then",
        "and",
        "\n",
        "`x`",
        '"y"',
        "a.txt",
        ", ",
        "not",
        "?",
        "tell me",
    ]
)


@settings(deadline=None)
@given(st.lists(PIECES, max_size=6))
def test_never_more_steps_than_words_ask_for(pieces: list[str]) -> None:
    words = " ".join(pieces)
    steps = asked(words)
    assert len(steps) <= words.count("then") + words.count(".") + words.count("\n") + words.count(
        "and"
    ) + 1 + (
        words.count("?")
        + words.count("!")
        + words.count(",")
        + words.count(";")
        + words.lower().count("finally")
    )
    assert all(len(step) <= 8 for step in steps)
