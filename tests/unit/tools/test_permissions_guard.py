"""The guard: rules first, then a person, and nobody is asked twice or two things at once."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from dragoman.tools.definition import Context, ToolDefinition
from dragoman.tools.permissions import RuleGuard, Rules, Verdict, subject_names

WRITE = ToolDefinition(
    name="write_file",
    risk="write",
    subject=lambda args: str(args["path"]),
    preview=lambda args: f"+{args['path']}",
)
RUN = ToolDefinition(name="run_command", risk="run", subject=lambda args: str(args["command"]))
PLAIN = ToolDefinition(name="mcp__a__b", risk="run")
CONTEXT = Context(session="s")


class FakeApprover:
    def __init__(self, *verdicts: Verdict) -> None:
        self.verdicts = list(verdicts)
        self.asked: list[tuple[str, str]] = []
        self.now = 0

    async def approve(
        self, definition: ToolDefinition, args: dict[str, Any], context: Context, preview: str
    ) -> Verdict:
        self.now += 1
        assert self.now == 1, "two questions at once"
        await asyncio.sleep(0)
        self.now -= 1
        self.asked.append((definition.name, preview))
        return self.verdicts.pop(0)


async def test_what_must_be_asked_is_denied_where_nobody_can_be_asked() -> None:
    decision = await RuleGuard(Rules()).decide(WRITE, {"path": "a"}, CONTEXT)
    assert not decision.allowed
    assert decision.reason == "write_file needs a person's approval, and nobody can be asked"
    assert decision.by == "nobody to ask"


async def test_rules_decide_without_a_question() -> None:
    person = FakeApprover()
    guard = RuleGuard(Rules.parse(["write_file(src/**)"], deny=["write_file(src/x)"]), person)
    allowed = await guard.decide(WRITE, {"path": "src/a"}, CONTEXT)
    denied = await guard.decide(WRITE, {"path": "src/./x"}, CONTEXT)
    assert (allowed.allowed, allowed.by) == (True, "allow rule write_file(src/**)")
    assert (denied.allowed, denied.by) == (False, "deny rule write_file(src/x)")
    assert denied.reason == "write_file is not allowed here (deny rule write_file(src/x))"
    assert person.asked == []


async def test_a_person_sees_what_would_change_and_may_decline() -> None:
    person = FakeApprover("once", "no")
    guard = RuleGuard(Rules(), person)
    first = await guard.decide(WRITE, {"path": "a"}, CONTEXT)
    second = await guard.decide(WRITE, {"path": "a"}, CONTEXT)
    assert (first.allowed, first.by) == (True, "once, said the user")
    assert (second.allowed, second.by, second.reason) == (False, "the user", "the user declined write_file")
    assert person.asked == [("write_file", "+a")] * 2


async def test_always_holds_for_the_same_thing_in_the_same_session_only() -> None:
    person = FakeApprover("always", "once", "once", "once")
    guard = RuleGuard(Rules(), person)
    assert guard.rule_for_always(WRITE, {"path": "./a"}) == "write_file(a)"
    assert guard.rule_for_always(PLAIN, {}) == "mcp__a__b"
    for _ in range(2):
        assert (await guard.decide(WRITE, {"path": "a"}, CONTEXT)).by == "always, said the user"
    assert len(person.asked) == 1
    await guard.decide(WRITE, {"path": "b"}, CONTEXT)
    await guard.decide(WRITE, {"path": "a"}, Context(session="other"))
    await guard.decide(RUN, {"command": "a"}, CONTEXT)
    assert len(person.asked) == 4


async def test_always_spares_even_an_ask_rule_but_never_beats_a_deny_rule() -> None:
    rules = Rules.parse(ask=["write_file"])
    guard = RuleGuard(rules, FakeApprover("always"))
    for _ in range(2):
        assert (await guard.decide(WRITE, {"path": "*"}, CONTEXT)).allowed
    denying = RuleGuard(Rules.parse(deny=["write_file(a)"]), FakeApprover("always"))
    assert (await denying.decide(WRITE, {"path": "*"}, CONTEXT)).allowed
    assert not (await denying.decide(WRITE, {"path": "a"}, CONTEXT)).allowed


async def test_parallel_calls_ask_one_after_the_other_and_one_always_answers_all() -> None:
    person = FakeApprover("always")
    guard = RuleGuard(Rules(), person)
    decisions = await asyncio.gather(*(guard.decide(PLAIN, {}, CONTEXT) for _ in range(5)))
    assert all(decision.allowed for decision in decisions)
    assert person.asked == [("mcp__a__b", "")]


async def test_arguments_that_cannot_be_read_are_denied_even_under_yolo() -> None:
    decision = await RuleGuard(Rules(mode="yolo")).decide(WRITE, {}, CONTEXT)
    assert not decision.allowed
    assert "cannot be told from its arguments" in decision.reason


async def test_a_preview_that_fails_does_not_spare_the_question() -> None:
    def explode(args: dict[str, Any]) -> str:
        raise OSError("no such file")

    person = FakeApprover("once")
    tool = ToolDefinition(name="edit_file", risk="write", preview=explode)
    assert (await RuleGuard(Rules(), person).decide(tool, {}, CONTEXT)).allowed
    assert person.asked == [("edit_file", "no preview: no such file")]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "root"
    (root / "src").mkdir(parents=True)
    (root / ".env").write_text("secret")
    (root / "src" / "link").symlink_to("../.env")
    (root / "src" / "out").symlink_to("/etc/passwd")
    return root


@pytest.mark.parametrize(
    ("path", "names"),
    [
        ("src/a", ("src/a",)),
        ("./src/../src//a", ("src/a",)),
        (".", (".",)),
        ("src/link", ("src/link", ".env")),
        ("src/out", ("src/out",)),
        ("../x", ("../x",)),
        ("..", ("..",)),
        ("/etc/passwd", None),
    ],
)
def test_a_path_has_all_its_names_inside_the_root(
    root: Path, path: str, names: tuple[str, ...] | None
) -> None:
    found = subject_names(path, str(root))
    assert found == names if names else found[0].startswith("../")


def test_an_absolute_path_into_the_root_is_judged_like_a_relative_one(root: Path) -> None:
    assert subject_names(str(root / "src" / "a"), str(root)) == ("src/a",)


async def test_a_link_is_no_way_around_a_deny_rule(root: Path) -> None:
    tool = ToolDefinition(name="read_file", risk="read", subject=lambda args: str(args["path"]))
    guard = RuleGuard(Rules.parse(deny=["read_file(.env)"]), root=root)
    for path in (".env", "src/link", "src/../.env", str(root / ".env")):
        assert not (await guard.decide(tool, {"path": path}, CONTEXT)).allowed, path
    assert (await guard.decide(tool, {"path": "src/a"}, CONTEXT)).allowed
