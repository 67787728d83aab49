"""Regular expressions of a model's: what Python's own engine says, and never more work than the text is long."""

from __future__ import annotations

import re
from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dragoman.translation.tool_search import linear_regex as module
from dragoman.translation.tool_search.linear_regex import MAX_PATTERN_CHARS, LinearRegex, PatternError

#: What a pattern is made of; not everything that can be put together is one.
PIECES = r"""
    a b B _ - . \. \d \w \s \W \x61 \u0062 \N{COMMA} \0 é ß
    [ab] [^a] [a-c_] []a] [\w-] [^\]] [[a] ^ $ \b \B \A \Z
    | ( ) (?: (?i: (?P<n> (?i) (?ms) * + ? *? +? ?? {2} {1,2} {,2} {1,} {0} { } {} {a} ]
""".split()
PATTERNS = st.lists(st.sampled_from([*PIECES, " "]), min_size=1, max_size=8).map("".join)
LINES = st.text(alphabet="abABcC_-. ,12éÉßk\u212a", min_size=1, max_size=10)


def python(source: str) -> re.Pattern[str] | None:
    try:
        return module._compile(source)
    except re.error:
        return None


@settings(max_examples=1500, deadline=None)
@given(source=PATTERNS, lines=st.lists(LINES, min_size=1, max_size=4))
def test_it_finds_what_python_finds(source: str, lines: list[str]) -> None:
    judge = python(source)
    if judge is None:
        with pytest.raises(PatternError):
            LinearRegex(source)
        return
    if re.search(r"[*+?}]\+", source):
        with suppress(PatternError):
            LinearRegex(source)
        return
    pattern = LinearRegex(source)
    assert [pattern.matches(line) for line in lines] == [judge.search(line) is not None for line in lines]


@pytest.mark.parametrize(
    ("source", "line", "found"),
    [
        ("weather", "get_weather", True),
        ("WEATHER", "get_weather", True),
        ("get_.*_data", "please get_user_data now", True),
        ("^get_", "forget_me", False),
        ("database.*query|query.*database", "query the database", True),
        ("(?i)slack", "Slack", True),
        ("(create|list)_(issue|pull)s?$", "list_issues", True),
        (r"\bissue\b", "an issue.", True),
        (r"\bissue\b", "tissues", False),
        ("", "anything", True),
        ("a{3}", "aa", False),
        ("x?", "-", True),
    ],
)
def test_the_patterns_of_the_documentation(source: str, line: str, found: bool) -> None:
    assert LinearRegex(source).matches(line) is found


@pytest.mark.parametrize(
    ("source", "why"),
    [
        ("(", "missing ), unterminated subpattern at position 0"),
        ("*", "nothing to repeat at position 0"),
        ("[", "unterminated character set at position 0"),
        ("a{99999999999999999999}", "the repetition number is too large"),
        (r"(a)\1", "back references cannot be used here"),
        ("(?P<x>a)(?P=x)", "(?P cannot be used here"),
        ("(?=a)", "(?= cannot be used here"),
        ("(?<!a)b", "(?< cannot be used here"),
        ("(?>a)", "(?> cannot be used here"),
        ("(?x: a)", "(?x cannot be used here"),
        ("(?x) a", "(?x cannot be used here"),
        ("(a)(?(1)b|c)", "(?( cannot be used here"),
        ("a++", "possessive quantifiers cannot be used here"),
        ("a{3000}", "the pattern repeats too much"),
        ("(a{50}){50}", "the pattern repeats too much"),
        ("a{1500}b{1500}", "the pattern repeats too much"),
        ("a" * (MAX_PATTERN_CHARS + 1), "the pattern is longer than 200 characters"),
    ],
)
def test_what_cannot_be_used_is_refused_in_words(source: str, why: str) -> None:
    with pytest.raises(PatternError) as caught:
        LinearRegex(source)
    assert str(caught.value).startswith(why)
    assert not caught.value.late


@pytest.mark.parametrize(
    "source",
    ["(a+)+$", "(.*)*x", "(a|a)*b", ".*.*.*.*x", "(a|aa)+b", r"(\w+\s?)*!", "(x?){50}y", "(a?){60}a{60}b"],
)
def test_a_pattern_that_hangs_python_takes_as_long_as_the_line(source: str) -> None:
    """No clock: a line ten times as long costs no step more, because every way was already tried."""
    pattern = LinearRegex(source)
    pattern.matches("a" * 500)
    before = pattern._work
    pattern.matches("a" * 5_000)
    assert pattern._work - before <= 2 * len(pattern._code)


class TestWork:
    LINE = "abaabbabbaababbabaab" * 50

    def test_a_pattern_with_too_many_states_ends_in_words(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(module, "_MAX_WORK", 2_000)
        pattern = LinearRegex("[ab]*a[ab]{60}c")
        with pytest.raises(PatternError) as caught:
            pattern.matches(self.LINE)
        assert str(caught.value) == "the pattern takes too long; write a simpler one"
        assert caught.value.late

    def test_what_was_learnt_is_forgotten_before_it_is_too_much(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(module, "_MAX_STATES", 3)
        source = "a[ab]{4}bb|ba[ab]{3}c"
        pattern = LinearRegex(source)
        assert pattern.matches(self.LINE) is (re.search(source, self.LINE) is not None)
        assert len(pattern._states) <= 3
