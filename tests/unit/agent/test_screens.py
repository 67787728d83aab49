"""What the person, the script and the pipe see of a turn."""

from __future__ import annotations

import asyncio
import io

import msgspec
import pytest

from dragoman.agent.events import (
    ApprovalAnswer,
    ApprovalQuestion,
    ShowCall,
    ShowNotice,
    ShowResult,
    ShowText,
    ShowThought,
    TurnEnd,
)
from dragoman.agent.limits import SessionUsage
from dragoman.agent.tui.chat import describe_usage
from dragoman.agent.tui.screens import JsonScreen, PlainScreen, TerminalScreen, describe_call, describe_result
from dragoman.agent.tui.style import TerminalStyle
from dragoman.ir import ToolResult, Usage
from dragoman.observe.prices import LONG_PROMPT_TOKENS, cost_usd, list_price
from tests.unit.agent.builders import call, result

READ = call("a", "read_file", b'{"path": "src/main.rs", "limit": 5}')
WISH = ApprovalQuestion(id="q1", tool="write_file", subject="a.txt", preview="+new")


def shown_by(screen: TerminalScreen | PlainScreen | JsonScreen) -> None:
    for one in (
        ShowThought("hm"),
        ShowText("I look"),
        ShowCall(READ),
        ShowResult(READ, result("a", "fn main\nrest\nmore"), 0.25),
        ShowNotice("by the way"),
        ShowText("done"),
    ):
        screen.show(one)


def test_the_terminal_shows_calls_between_the_words() -> None:
    out = io.StringIO()
    screen = TerminalScreen(TerminalStyle(), out)
    shown_by(screen)
    screen.line("end")
    assert out.getvalue() == (
        "I look\n● read_file src/main.rs 5\n  ✓ fn main  (+2 lines)  0.25 s\nby the way\ndone\nend\n"
    )


def test_results_of_parallel_calls_say_whose_they_are() -> None:
    out = io.StringIO()
    screen = TerminalScreen(TerminalStyle(), out)
    other = call("b", "list_files")
    screen.show(ShowCall(READ))
    screen.show(ShowCall(other))
    screen.show(ShowResult(other, result("b", "no such folder", is_error=True), 0.0))
    assert out.getvalue().splitlines()[-1] == "  ✗ list_files: no such folder  0.00 s"


async def test_the_line_that_says_what_is_waited_for_is_gone_at_the_end() -> None:
    out, now = io.StringIO(), [0.0]
    screen = TerminalScreen(TerminalStyle(live=True, width=60), out, clock=lambda: now[0])
    async with screen.turn():
        screen.show(ShowThought("pondering"))
        await _until(out, "… 0 s pondering")
        screen.show(ShowCall(READ))
        screen.show(ShowCall(call("b", "see")))
        screen.progress("half way")
        now[0] = 3.0
        await _until(out, "… read_file src/main.rs 5 and 1 more 3 s")
        assert "half way" in out.getvalue()
    assert out.getvalue().endswith("\r\x1b[2K")


async def _until(out: io.StringIO, words: str) -> None:
    async with asyncio.timeout(10):
        while words not in out.getvalue():
            await asyncio.sleep(0.01)


@pytest.mark.parametrize(
    ("typed", "answer"), [("y", "once"), ("Always", "always"), ("no", "no"), ("v", "never")]
)
async def test_a_question_is_asked_until_it_is_answered(typed: str, answer: ApprovalAnswer) -> None:
    lines = ["what?", "", typed]

    async def read(_label: str) -> str:
        return lines.pop(0)

    out = io.StringIO()
    assert await TerminalScreen(TerminalStyle(), out, read).approve(WISH) == answer
    assert lines == []
    assert "  +new\n? write_file a.txt\n" in out.getvalue()


async def test_who_goes_away_says_no() -> None:
    async def read(_label: str) -> str:
        raise EOFError

    assert await TerminalScreen(TerminalStyle(), io.StringIO(), read).approve(WISH) == "no"
    assert await TerminalScreen(TerminalStyle(), io.StringIO()).approve(WISH) == "no"
    assert await PlainScreen(io.StringIO(), io.StringIO()).approve(WISH) == "no"
    assert await JsonScreen(io.StringIO()).approve(WISH) == "no"


def test_a_pipe_gets_nothing_but_the_answer() -> None:
    out, aside = io.StringIO(), io.StringIO()
    screen = PlainScreen(out, aside)
    shown_by(screen)
    screen.progress("50 %")
    screen.close()
    screen.close()
    assert out.getvalue() == "I look\ndone\n"
    assert aside.getvalue().splitlines() == [
        "● read_file src/main.rs 5",
        "  ✓ read_file: fn main  (+2 lines)  0.25 s",
        "by the way",
        "    50 %",
    ]


def test_a_script_gets_one_object_per_line() -> None:
    out = io.StringIO()
    screen = JsonScreen(out)
    screen.begin("s1", "gemini-x")
    shown_by(screen)
    screen.progress("50 %")
    screen.show(ShowCall(call("c", args=b"{oops")))
    screen.show(ShowResult(READ, ToolResult(call_id="a", response=b'{"output":[1]}'), 0.1))
    screen.end(TurnEnd("loop", "again"), SessionUsage(requests=2, cost_usd=None), 4)
    lines = [msgspec.json.decode(line) for line in out.getvalue().splitlines()]
    kinds = "start thought text call result remark text progress call result stop".split()
    assert [line["type"] for line in lines] == kinds
    assert lines[3]["args"] == {"path": "src/main.rs", "limit": 5}
    assert lines[4]["text"] == "fn main\nrest\nmore"
    assert lines[8]["args"] == "{oops"
    assert lines[9]["response"] == {"output": [1]}
    assert lines[-1]["exit_code"] == 4
    assert lines[-1]["usage"]["cost_usd"] is None


@pytest.mark.parametrize(
    ("response", "words"),
    [
        (b'{"output":["a.rs","b.rs"]}', "a.rs  (+1 lines)"),
        (b'{"output":[{"n":1}]}', '{"n":1}'),
        (b'{"output":[]}', "[]"),
        (b'{"output":"text"}', "text"),
        (b'{"a":1}', '{"a":1}'),
    ],
)
def test_a_json_result_is_told_in_a_line(response: bytes, words: str) -> None:
    assert describe_result(ToolResult(call_id="a", response=response)) == words


def test_arguments_that_are_no_json_are_shown_as_they_are() -> None:
    assert describe_call(call(args=b"{oops\x1b")) == "look {oops␛"


def test_a_price_is_known_or_unknown() -> None:
    assert list_price("gemini-nobody-knows") is None
    assert list_price("models/gemini-2.5-flash-001") is list_price("gemini-2.5-flash")
    assert list_price("gemini-3.1-pro-preview") is not None
    price = list_price("gemini-2.5-pro")
    assert price is not None
    short = cost_usd(Usage(input_tokens=1_000, cached_tokens=500, output_tokens=100), price)
    assert short == pytest.approx((500 * 1.25 + 500 * 0.125 + 100 * 10) / 1e6)
    long = cost_usd(Usage(input_tokens=LONG_PROMPT_TOKENS + 1), price)
    assert long == pytest.approx((LONG_PROMPT_TOKENS + 1) * 2.5 / 1e6)


def test_usage_in_a_line() -> None:
    spent = SessionUsage(requests=2, input_tokens=1_500, cached_tokens=500, output_tokens=20, cost_usd=0.5)
    assert describe_usage(spent) == "2 requests, 1,500 tokens in (500 cached), 20 out, $0.5000"
    assert describe_usage(SessionUsage(cost_usd=None)).endswith("price unknown")
