from __future__ import annotations

import pytest

from dragoman.gateway.dashboard.summaries import client_name, request_row
from dragoman.ir import Usage
from dragoman.notes import Note
from dragoman.observe.record import Attempt, ClientToolResult
from tests.unit.gateway.dashboard.builders import record


def test_a_row_tells_what_the_record_knows() -> None:
    row = request_row(
        record(
            client="claude-cli/2.1 (external, cli)",
            session="s",
            asked_model="claude-sonnet-4-5",
            model="gemini-2.5-flash",
            usage=Usage(input_tokens=9, cached_tokens=4, output_tokens=2),
            calls=("Bash",),
            own_calls=("search",),
            results=(ClientToolResult("Bash", True, 3), ClientToolResult("Read", False, 3)),
            notes=(Note("dropped", "x", "y"),),
            attempts=(Attempt(model="m"), Attempt(model="m")),
            total_ms=7,
        ),
        lambda _: 0.25,
    )
    assert (row.client, row.at_ms, row.cost_usd, row.total_ms) == ("Claude Code", 1_700_000_000_000, 0.25, 7)
    assert (row.tokens_in, row.tokens_cached, row.tokens_out) == (9, 4, 2)
    assert (row.calls, row.own_calls) == (("Bash",), ("search",))
    assert (row.results, row.failed_results, row.notes, row.attempts) == (2, 1, 1, 2)


def test_a_cost_that_nobody_knows_is_none() -> None:
    assert request_row(record(), lambda _: None).cost_usd is None


@pytest.mark.parametrize(
    ("agent", "name"),
    [
        ("claude-cli/2.1.325 (external, cli)", "Claude Code"),
        ("Anthropic/Python 2.8.0", "Anthropic SDK"),
        ("AsyncOpenAI/Python 3.1", "OpenAI SDK"),
        ("codex_cli_rs/0.166.0 (Debian)", "Codex"),
        ("GeminiCLI/0.61.0/gemini-2.5-pro (linux; x64)", "Gemini CLI"),
        ("google-genai-sdk/3.1 gl-python/3.11", "Google GenAI SDK"),
        ("Mozilla/5.0 google-genai-sdk/3.1", "Google GenAI SDK"),
        ("my-agent/1.0", "my-agent"),
        ("x" * 100, "x" * 40),
        ("", ""),
        ("///", ""),
    ],
)
def test_clients_are_called_what_people_call_them(agent: str, name: str) -> None:
    assert client_name(agent) == name
