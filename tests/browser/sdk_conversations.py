"""Conversations as programmers have them, held by the vendors' own libraries through a real gateway."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import openai
from anthropic import Anthropic
from anthropic.types import MessageParam, ToolParam
from google import genai
from google.genai import types

from dragoman import emulator
from dragoman.emulator.testing import Emulator
from tests.e2e.gateway import GATEWAY_KEY

CLAUDE = {"user-agent": "claude-cli/2.1.325 (external, cli)"}
SESSION = "4be0a7c2-5a11-4f0e-9d0c-8f2f6f6a3b21"
SYSTEM = "You are Claude Code, Anthropic's official CLI. Be concise. Prefer small, reviewable changes."

_TEXT = {"type": "string"}
TOOLS: list[ToolParam] = [
    {
        "name": "Bash",
        "description": "Runs a command in the project's shell and returns what it prints.",
        "input_schema": {
            "type": "object",
            "properties": {
                "command": {"type": "string", "description": "The command to run"},
                "timeout": {"type": "number", "maximum": 600_000},
            },
            "required": ["command"],
            "additionalProperties": False,
            "$schema": "http://json-schema.org/draft-07/schema#",
        },
    },
    {
        "name": "Read",
        "description": "Reads a file from the local filesystem.",
        "input_schema": {
            "type": "object",
            "properties": {"file_path": _TEXT, "offset": {"type": "integer", "exclusiveMinimum": 0}},
            "required": ["file_path"],
            "additionalProperties": False,
        },
    },
    {
        "name": "Edit",
        "description": "Replaces text in a file.",
        "input_schema": {
            "type": "object",
            "properties": {"file_path": _TEXT, "old_string": _TEXT, "new_string": _TEXT},
            "required": ["file_path", "old_string", "new_string"],
        },
    },
    {
        "name": "Grep",
        "description": "Searches files.",
        "input_schema": {"type": "object", "properties": {"pattern": _TEXT}},
    },
    {
        "name": "mcp__ci server__rerun job",
        "description": "Starts a job of the build server again.",
        "input_schema": {"type": "object", "properties": {"job": {"type": "integer"}}},
    },
]
TEST_RUN = """\
tests/test_invoice.py ..F.                                               [100%]

=================================== FAILURES ===================================
____________________________ test_rounds_half_to_even __________________________

    def test_rounds_half_to_even():
>       assert total([Line("0.125", 1)]) == Decimal("0.12")
E       AssertionError: assert Decimal('0.13') == Decimal('0.12')

tests/test_invoice.py:41: AssertionError
========================= 1 failed, 3 passed in 0.21s =========================="""
SOURCE = """\
 1  from decimal import ROUND_HALF_UP, Decimal
 2
 3  CENT = Decimal("0.01")
 4
 5  def total(lines):
 6      whole = sum(line.price * line.count for line in lines)
 7      return whole.quantize(CENT, rounding=ROUND_HALF_UP)"""
_THOUGHT = (
    "The failing test expects banker's rounding. Something rounds half up instead. "
    "Let me see where the total is quantized before I change anything."
)


def _script() -> dict[str, Any]:
    """What the model says, turn by turn."""

    def step(when: dict[str, Any], *reply: dict[str, Any], prompt: int, cached: int = 0) -> dict[str, Any]:
        usage = {"promptTokenCount": prompt} | ({"cachedContentTokenCount": cached} if cached else {})
        return {
            "when": when,
            "reply": list(reply),
            "usage": usage,
            "times": "always",
            "optional": True,
            "delay": 0.15,
        }

    def call(name: str, **args: Any) -> dict[str, Any]:
        return {"call": {"name": name, "args": args}}

    path = "src/invoice.py"
    steps = [
        step(
            {"says": "fail in CI"},
            {"thought": "I should run the tests first and look at what fails."},
            {"text": "I'll run the tests to see the failure."},
            call("Bash", command="pytest -q tests/test_invoice.py"),
            prompt=14_820,
        ),
        step(
            {"answers": "Bash", "results": "AssertionError"},
            {"thought": _THOUGHT},
            {"text": "One test fails: rounding. I'll look at the code and its callers together."},
            call("Read", file_path=path),
            call("Grep", pattern=r"ROUND_HALF_UP"),
            prompt=15_604,
            cached=14_336,
        ),
        step(
            {"answers": ["Read", "Grep"]},
            {"text": "`total` rounds half up; the specification says half to even."},
            call(
                "Edit",
                file_path=path,
                old_string="rounding=ROUND_HALF_UP",
                new_string="rounding=ROUND_HALF_EVEN",
            ),
            prompt=16_310,
            cached=15_360,
        ),
        step(
            {"answers": "Edit"},
            call("Bash", command="pytest -q tests/test_invoice.py"),
            prompt=16_702,
            cached=15_360,
        ),
        step(
            {"answers": "Bash", "results": "4 passed"},
            {
                "text": "Fixed. `src/invoice.py` rounded half up, so 0.125 became 0.13 instead of 0.12. It now "
                "uses `ROUND_HALF_EVEN`, as the specification says, and all four tests pass.\n\nNothing else in "
                "the project used the old mode."
            },
            prompt=16_950,
            cached=16_384,
        ),
        step({"says": "order 4711"}, call("get_order", id=4711), prompt=640),
        step({"answers": "get_order"}, {"text": "Order 4711 left the warehouse yesterday."}, prompt=702),
        step({"says": "flights to Lisbon"}, call("search_flights", to="LIS", date="2026-12-01"), prompt=810),
        step(
            {"answers": "search_flights"},
            {"text": "The search is down at the moment; shall I try again?"},
            prompt=910,
        ),
        step(
            {"says": "Summarise"},
            {"text": "Three changes: rounding, retries, and a new table."},
            prompt=9_300,
        ),
        {"when": {"says": "too much"}, "fault": {"quota_minute": 1}, "times": "always", "optional": True},
    ]
    # A result belongs to the question it was fetched for: whoever answers a call must be asked before that.
    return {"steps": sorted(steps, key=lambda one: "answers" not in one["when"])}


@contextmanager
def acted_google() -> Iterator[Emulator]:
    with emulator.running(_script()) as gemini:
        yield gemini


def fix_the_build(url: str) -> None:
    """Six turns of a coding agent with four tools."""
    client = Anthropic(base_url=url, auth_token=GATEWAY_KEY, default_headers=CLAUDE, max_retries=0)
    results = {
        "Bash": iter((TEST_RUN, "....                                         [100%]\n4 passed in 0.19s")),
        "Read": iter((SOURCE,)),
        "Grep": iter(("src/invoice.py:1:from decimal import ROUND_HALF_UP, Decimal",)),
        "Edit": iter(("The file src/invoice.py has been updated.",)),
    }
    messages: list[MessageParam] = [
        {
            "role": "user",
            "content": "The invoice tests fail in CI since this morning. Find out why, and fix it.",
        }
    ]
    with client:
        for _ in range(6):
            with client.messages.stream(
                model="claude-sonnet-5",
                max_tokens=8000,
                system=SYSTEM,
                tools=TOOLS,
                messages=messages,
                metadata={"user_id": f"user_0_account__session_{SESSION}"},
                extra_body={
                    "top_k": 40,
                    "service_tier": "auto",
                    "thinking": {"type": "enabled", "budget_tokens": 4000},
                },
            ) as stream:
                answer = stream.get_final_message()
            messages.append({"role": "assistant", "content": answer.content})
            calls = [block for block in answer.content if block.type == "tool_use"]
            if not calls:
                return
            messages.append(
                {
                    "role": "user",
                    "content": [
                        {"type": "tool_result", "tool_use_id": one.id, "content": next(results[one.name])}
                        for one in calls
                    ],
                }
            )


def ask_with_openai(url: str, question: str, tool: str, answer: str) -> None:
    """A call and its result over Chat Completions."""
    function: Any = {
        "name": tool,
        "description": "Looks it up.",
        "parameters": {"type": "object", "properties": {}},
    }
    messages: list[Any] = [{"role": "user", "content": question}]
    with openai.OpenAI(base_url=f"{url}/v1", api_key=GATEWAY_KEY, max_retries=0) as client:
        for _ in range(2):
            made = client.chat.completions.create(
                model="gpt-5",
                messages=messages,
                tools=[{"type": "function", "function": function}],
                user="shop",
            )
            message = made.choices[0].message
            messages.append(message.model_dump(exclude_none=True))
            messages += [
                {"role": "tool", "tool_call_id": call.id, "content": answer}
                for call in message.tool_calls or ()
            ]


def summarise_with_genai(url: str) -> None:
    options = types.HttpOptions(base_url=url)
    with genai.Client(api_key=GATEWAY_KEY, http_options=options) as client:
        client.models.generate_content(model="gemini-2.5-pro", contents="Summarise the last three commits.")


def ask_too_much(url: str) -> None:
    """Google refuses, and goes on refusing."""
    with openai.OpenAI(base_url=f"{url}/v1", api_key=GATEWAY_KEY, max_retries=0) as client:
        try:
            client.responses.create(model="gpt-5-codex", input="This is too much.")
        except openai.RateLimitError:
            return
    raise AssertionError("this quota should have been used up")


def perform(url: str) -> None:
    summarise_with_genai(url)
    ask_with_openai(url, "Where is order 4711?", "get_order", json.dumps({"id": 4711, "status": "shipped"}))
    ask_with_openai(url, "Find flights to Lisbon", "search_flights", "error: the search timed out")
    ask_too_much(url)
    fix_the_build(url)
