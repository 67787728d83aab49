"""The words that steer the model exactly."""

from __future__ import annotations

import re

import pytest

from dragoman.emulator.model import directives
from dragoman.emulator.model.directives import DirectiveCall, DirectivePlan, DirectiveStep, read_directives

LS = DirectiveCall("Bash", {"command": "ls"})
READ = DirectiveCall("Read", {"file_path": "/a"})

PLANS = {
    "one call": ('use Bash with {"command":"ls"}', DirectivePlan(steps=(DirectiveStep((LS,)),))),
    "parallel": (
        'use Bash with {"command":"ls"} and use Read with {"file_path":"/a"}',
        DirectivePlan(steps=(DirectiveStep((LS, READ)),)),
    ),
    "two steps and a last word": (
        'use Bash with {"command":"ls"} then use Read with {"file_path":"/a"} then say all done',
        DirectivePlan(steps=(DirectiveStep((LS,)), DirectiveStep((READ,))), say="all done"),
    ),
    "prose around": (
        'Please, could you use `Bash` with {"command": "ls"}? After that Use Read with '
        '{"file_path":"/a"}. Thanks!',
        DirectivePlan(steps=(DirectiveStep((LS,)), DirectiveStep((READ,)))),
    ),
    "braces and quotes in strings": (
        'use Bash with {"command":"echo \\"}{\\" {x}"} then say ok',
        DirectivePlan(
            steps=(DirectiveStep((DirectiveCall("Bash", {"command": 'echo "}{" {x}'}),)),), say="ok"
        ),
    ),
    "nested and over several lines": (
        'use Edit with {\n  "a": {"b": [1, {"c": "x\ny"}]}\n}\nthen say fine',
        DirectivePlan(
            steps=(DirectiveStep((DirectiveCall("Edit", {"a": {"b": [1, {"c": "x\ny"}]}}),)),), say="fine"
        ),
    ),
    "only a word": ("say hello world", DirectivePlan(say="hello world")),
    "a quoted word keeps its lines": ('say "a\\nb then c"', DirectivePlan(say="a\nb then c")),
    "text in front of a call": (
        'say looking then use Bash with {"command":"ls"}',
        DirectivePlan(steps=(DirectiveStep((LS,), "looking"),)),
    ),
    "a thought": (
        'think about it first then use Bash with {"command":"ls"} and say bye',
        DirectivePlan(steps=(DirectiveStep((LS,)),), say="bye", think="about it first"),
    ),
    "a directive inside an argument is an argument": (
        'use Write with {"content": "use Bash with {} then say no"}',
        DirectivePlan(
            steps=(DirectiveStep((DirectiveCall("Write", {"content": "use Bash with {} then say no"}),)),)
        ),
    ),
    "names with dots and colons": (
        "use mcp__a.b:c-d with {}",
        DirectivePlan(steps=(DirectiveStep((DirectiveCall("mcp__a.b:c-d", {}),)),)),
    ),
    "broken JSON is prose": ('use Bash with {"command": then say hi', DirectivePlan(say="hi")),
    "ordinary prose": ("I think you should say what you use with care.", DirectivePlan()),
    "nothing": ("", DirectivePlan()),
}


@pytest.mark.parametrize(("words", "plan"), PLANS.values(), ids=PLANS.keys())
def test_plan(words: str, plan: DirectivePlan) -> None:
    assert read_directives(words) == plan


def test_long_text_with_many_near_directives_is_read_once() -> None:
    assert read_directives("use x with {" * 3000 + "say then " * 3000).steps == ()


class Counting:
    """A pattern that knows how often it was searched for."""

    def __init__(self, pattern: re.Pattern[str]) -> None:
        self._pattern = pattern
        self.searches = 0

    def search(self, words: str, position: int = 0) -> re.Match[str] | None:
        self.searches += 1
        return self._pattern.search(words, position)


@pytest.mark.parametrize(
    ("line", "rare", "often"), [("say a\n", "_USE", "_WORD"), ("use f with {}\n", "_WORD", "_USE")]
)
def test_a_pasted_log_full_of_directives_is_read_once(
    line: str, rare: str, often: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """24 KB of `say` lines took two seconds while the rest was searched anew for each of them."""
    patterns = {name: Counting(getattr(directives, name)) for name in (rare, often)}
    for name, pattern in patterns.items():
        monkeypatch.setattr(directives, name, pattern)
    plan = read_directives(line * 500)
    assert len(plan.steps) == 500 or plan.say == "\n".join("a" * 500)
    assert (patterns[rare].searches, patterns[often].searches) == (1, 501)
