"""Rules decide what a model may do on somebody's machine: a doubt must never allow."""

from __future__ import annotations

import shlex
from typing import get_args

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.errors import ConfigError
from dragoman.tools.definition import Risk
from dragoman.tools.permissions import DEFAULTS, Effect, Mode, Rule, Rules, parse_rule

SEVERITY = {"allow": 0, "ask": 1, "deny": 2}


def effect(rules: Rules, tool: str, risk: Risk, *subjects: str) -> str:
    return rules.evaluate(tool, risk, subjects).effect


@pytest.mark.parametrize(
    ("pattern", "path", "matches"),
    [
        ("src/**", "src/a.py", True),
        ("src/**", "src/deep/er/a.py", True),
        ("src/**", "src", True),
        ("src/**", "srcs/a.py", False),
        ("src/*", "src/a.py", True),
        ("src/*", "src/deep/a.py", False),
        ("./src//*", "src/a.py", True),
        ("**/*.py", "a.py", True),
        ("**/*.py", "x/y/a.py", True),
        ("**/*.py", "x/y/a.pyc", False),
        ("*.md", "docs/a.md", False),
        ("a?c", "abc", True),
        ("a?c", "a/c", False),
        ("a.c", "abc", False),
        ("[ab]", "[ab]", True),
        ("[ab]", "a", False),
        ("**", "any/thing", True),
        ("https://x/**", "https:/x/y", True),
    ],
)
def test_path_patterns_mean_what_gitignore_taught_everybody(pattern: str, path: str, matches: bool) -> None:
    rules = Rules.parse([f"write_file({pattern})"])
    assert effect(rules, "write_file", "write", path) == ("allow" if matches else "ask")


@pytest.mark.parametrize(
    ("argv", "allowed"),
    [
        (["git", "status"], True),
        (["git", "status", "--short"], True),
        (["git", "status;", "rm", "-rf"], False),
        (["git", "status", ";", "rm", "-rf"], False),
        (["git", "status", "&&", "rm"], False),
        (["git", "status", "|", "sh"], False),
        (["git", "status", "$(rm)"], False),
        (["git", "status", "`rm`"], False),
        (["git", "status", "a\nrm"], False),
        (["git", "status", ">x"], False),
        (["git status"], False),
        (["gitstatus"], False),
        (["/bin/sh", "-c", "git status"], False),
        (["evil", "git", "status"], False),
    ],
)
def test_an_allowed_command_is_no_door_for_another(argv: list[str], allowed: bool) -> None:
    rules = Rules.parse(["run_command(git status*)"])
    assert (effect(rules, "run_command", "run", shlex.join(argv)) == "allow") is allowed


def test_a_denied_command_cannot_hide_behind_shell_operators() -> None:
    rules = Rules.parse(["run_command"], deny=["run_command(*rm *)"])
    assert effect(rules, "run_command", "run", "sh -c 'true; RM -rf x'") == "deny"
    assert effect(rules, "run_command", "run", "ls") == "allow"


def test_deny_wins_over_ask_wins_over_allow_however_specific() -> None:
    rules = Rules.parse(["f(a/b/c.txt)"], ask=["f(a/**)"], deny=["f(a/b/**)"])
    assert effect(rules, "f", "read", "a/b/c.txt") == "deny"
    assert effect(rules, "f", "read", "a/x") == "ask"
    assert effect(rules, "f", "read", "x") == "allow"


def test_the_most_specific_of_equals_is_named() -> None:
    rules = Rules.parse(deny=["f", "f(a/**)", "f(a/b)"])
    assert rules.evaluate("f", "read", ["a/b"]).by == "deny rule f(a/b)"
    assert rules.evaluate("f", "read", ["a/c"]).by == "deny rule f(a/**)"
    assert rules.evaluate("f", "read", ["x"]).by == "deny rule f"


@pytest.mark.parametrize("risk", get_args(Risk))
def test_without_a_rule_the_risk_decides(risk: Risk) -> None:
    judgement = Rules().evaluate("anything", risk)
    assert judgement.effect == {"read": "allow", "write": "ask", "run": "ask"}[risk]
    assert judgement.by == f"default for tools that {risk}"


def test_tools_of_a_server_are_named_by_pattern() -> None:
    rules = Rules.parse(["mcp__github__*"], deny=["mcp__github__delete_*"])
    assert effect(rules, "mcp__github__list", "run") == "allow"
    assert effect(rules, "mcp__github__delete_repo", "run") == "deny"
    assert effect(rules, "mcp__gitlab__list", "run") == "ask"


def test_yolo_leaves_only_what_is_denied() -> None:
    rules = Rules.parse(ask=["f(a)"], deny=["f(b)"], mode="yolo")
    assert rules.evaluate("f", "run", ["a"]) == msgspec.convert(
        {"effect": "allow", "by": "--yolo"}, type(rules.evaluate("f", "run"))
    )
    assert effect(rules, "f", "run", "b") == "deny"


def test_read_only_denies_what_an_allow_rule_would_let_through() -> None:
    rules = Rules.parse(["f", "g"], ask=["g(secret)"], mode="read_only")
    assert rules.evaluate("f", "write", ["x"]).by == "--read-only"
    assert effect(rules, "f", "run", "x") == "deny"
    assert effect(rules, "g", "read", "x") == "allow"
    assert effect(rules, "g", "read", "secret") == "ask"


def test_an_unknown_subject_is_denied_by_any_pattern_and_allowed_by_none() -> None:
    assert effect(Rules.parse(["f(**)"]), "f", "write") == "ask"
    assert effect(Rules.parse(["f"], deny=["f(a)"]), "f", "write") == "deny"


def test_every_name_of_a_file_must_be_allowed_and_one_is_enough_to_deny() -> None:
    assert effect(Rules.parse(["f(src/**)"]), "f", "write", "src/link", ".env") == "ask"
    assert effect(Rules.parse(["f"], deny=["f(.env)"]), "f", "write", "src/link", ".env") == "deny"


def test_a_denied_file_stays_denied_where_case_does_not_matter_to_the_disk() -> None:
    rules = Rules.parse(["read_file(ok)"], deny=["read_file(.env)"])
    assert effect(rules, "read_file", "read", ".ENV") == "deny"
    assert not Rule(effect="allow", tool="f", pattern="ok").matches("f", "read", ["OK"])


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "is no rule"),
        ("write_file(", "is no rule"),
        ("write_file)", "is no rule"),
        ("(src)", "is no rule"),
        ("write file(x)", "is no rule"),
        ("write_file(a) b", "is no rule"),
        ("wr|te", "is no rule"),
        ("write_file( )", "has no pattern"),
        ("mcp__a__b(x)", "MCP tools have no pattern"),
        ("write_file(/etc/**)", "leads out of the project"),
        ("write_file(~/x)", "leads out of the project"),
        ("write_file( ../x)", "leads out of the project"),
    ],
)
def test_a_rule_that_could_never_hold_is_an_error_with_its_place(text: str, complaint: str) -> None:
    with pytest.raises(ConfigError, match=complaint) as caught:
        Rules.parse(["read_file"], deny=["read_file", text])
    assert caught.value.where == "tools.deny[1]"


def test_a_misspelt_tool_in_a_deny_rule_protects_nothing_so_it_is_an_error() -> None:
    known = ("read_file", "write_file")
    with pytest.raises(
        ConfigError, match=r"tools.deny\[0\]: there is no tool 'write_fle'; did you mean write_file\?"
    ):
        Rules.parse(deny=["write_fle(x)"], known=known)
    Rules.parse(["run_command(ls)"], deny=["write_file(x)", "mcp__down__tool", "write*"], known=known)


def test_patterns_of_commands_may_be_paths_and_have_parentheses() -> None:
    assert parse_rule("run_command(/bin/ls (x))", "allow").pattern == "/bin/ls (x)"
    assert parse_rule(" read_file ", "allow").text == "read_file"


words = st.sampled_from(["src", "a", ".env", "git", "status", "*", "**", "?", ";", " ", "/", "x.py", "A"])
patterns = st.lists(words, min_size=1, max_size=5).map("".join)
tools = st.sampled_from(["f", "g", "*", "f*"])
rules_ = st.builds(Rule, effect=st.sampled_from(get_args(Effect)), tool=tools, pattern=st.none() | patterns)
sets = st.builds(Rules, rules=st.lists(rules_, max_size=5).map(tuple), mode=st.sampled_from(get_args(Mode)))
subjects_ = st.lists(st.lists(words.filter(lambda w: "*" not in w), min_size=1).map("".join), max_size=2)
calls = st.tuples(st.sampled_from(["f", "g", "h"]), st.sampled_from(get_args(Risk)), subjects_)


@given(sets, rules_, calls)
def test_another_rule_moves_the_answer_only_in_its_own_direction(
    rules: Rules, rule: Rule, call: tuple[str, Risk, list[str]]
) -> None:
    before = rules.evaluate(*call).effect
    after = msgspec.structs.replace(rules, rules=(*rules.rules, rule)).evaluate(*call).effect
    if rule.effect == "deny":
        assert SEVERITY[after] >= SEVERITY[before]
        assert after in ("deny", before)
    elif after != before:
        assert after == rule.effect
        assert before == DEFAULTS[call[1]] or (rule.effect == "ask" and before == "allow")


@given(sets, calls, st.randoms())
def test_the_order_of_rules_means_nothing(
    rules: Rules, call: tuple[str, Risk, list[str]], random: object
) -> None:
    turned = msgspec.structs.replace(rules, rules=rules.rules[::-1])
    assert turned.evaluate(*call).effect == rules.evaluate(*call).effect


@given(sets, calls)
def test_yolo_never_asks_and_read_only_never_writes(rules: Rules, call: tuple[str, Risk, list[str]]) -> None:
    yolo = msgspec.structs.replace(rules, mode="yolo").evaluate(*call).effect
    assert yolo in ("allow", "deny")
    strict = msgspec.structs.replace(rules, mode="read_only").evaluate(*call).effect
    normal = msgspec.structs.replace(rules, mode="normal").evaluate(*call).effect
    assert SEVERITY[strict] >= SEVERITY[normal] >= SEVERITY[yolo]
    if call[1] != "read":
        assert strict == "deny"


@given(patterns, st.lists(st.text(max_size=8), min_size=1, max_size=4))
def test_no_wildcard_of_an_allow_rule_covers_a_shell_operator(pattern: str, argv: list[str]) -> None:
    subject = shlex.join(argv)
    if Rule(effect="allow", tool="run_command", pattern=pattern).matches("run_command", "run", [subject]):
        assert set(subject) & set(";|&<>$`\n") <= set(pattern)


@given(st.text(max_size=30))
def test_any_text_is_a_rule_or_a_config_error(text: str) -> None:
    try:
        rule = parse_rule(text, "deny")
    except ConfigError:
        return
    assert parse_rule(rule.text, "deny") == rule
