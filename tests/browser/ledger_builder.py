"""A past for a gateway that has none: records as it would have written them, put into its ledger before it starts."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from uuid import NAMESPACE_OID, uuid5

import msgspec

from dragoman.config import Config
from dragoman.config.model import LimitsConfig
from dragoman.ir import Usage
from dragoman.notes import Note
from dragoman.observe.record import Attempt, ClientToolResult, RequestRecord
from dragoman.observe.usage import merge, tallies_of
from dragoman.store import LedgerEntry, SqliteStore, Tally, open_store

#: User-Agent, dialect, path, the model that is asked for, the one that runs, its tools.
CLIENTS = (
    ("claude-cli/2.1.325 (external, cli)", "anthropic", "/v1/messages", "claude-sonnet-4-5", "gemini-2.5-flash",
     ("Bash", "Read", "Edit", "Grep", "Write", "TodoWrite")),
    ("claude-cli/2.1.325 (external, cli)", "anthropic", "/v1/messages", "claude-opus-4-5", "gemini-3.1-pro-preview",
     ("Bash", "Read", "Edit", "Task", "WebFetch")),
    ("codex_cli_rs/0.166.0 (Linux)", "openai_responses", "/v1/responses", "gpt-5-codex", "gemini-3.1-pro-preview",
     ("shell", "apply_patch", "update_plan")),
    ("GeminiCLI/0.61.0/gemini-2.5-pro", "gemini", "/v1beta/models/gemini-2.5-pro:streamGenerateContent",
     "gemini-2.5-pro", "gemini-2.5-pro", ("read_file", "run_shell_command", "replace")),
    ("OpenAI/Python 3.49.0", "openai_chat", "/v1/chat/completions", "gpt-5-mini", "gemini-2.5-flash-lite",
     ("search_flights", "get_order")),
    ("Boto3/1.44.2 md/Botocore", "bedrock", "/model/anthropic.claude-sonnet-4-5/converse-stream",
     "anthropic.claude-sonnet-4-5", "gemini-2.5-flash", ("lookup_customer", "create_ticket")),
)  # fmt: skip
_NOTES = (
    Note("dropped", "tools[0].input_schema.additionalProperties", "Gemini has no such keyword"),
    Note("clamped", "top_k", "at most 64"),
)
_ERRORS = (("rate_limit", 429), ("overloaded", 529), ("invalid_request", 400))


def make_records(times_s: Sequence[float], seed: int = 7, *, sessions: int = 40) -> Iterator[RequestRecord]:
    """One request for each of these times."""
    chance = random.Random(seed)
    for number, at_s in enumerate(times_s):
        yield _record(number, at_s, chance, sessions)


def _record(number: int, at_s: float, chance: random.Random, sessions: int) -> RequestRecord:
    which = chance.choices(range(len(CLIENTS)), weights=(9, 3, 4, 3, 2, 2))[0]
    agent, dialect, path, asked, model, tools = CLIENTS[which]
    error, status = chance.choice(_ERRORS) if chance.random() < 0.04 else ("", 200)
    calls = () if error or chance.random() < 0.35 else _names(tools, chance, (1, 1, 1, 2, 3))
    results = tuple(_outcome(name, chance) for name in _names(tools, chance, (0, 1, 1, 2)))
    wait_ms = int(chance.lognormvariate(7.3, 0.7))
    tokens = chance.randint(900, 60_000)
    attempts = [Attempt(model=model, status=status, error=error, ms=wait_ms, at_ms=3)]
    return RequestRecord(
        id=f"req_past{number:012d}",
        started_s=at_s,
        method="POST",
        path=path,
        client=agent,
        dialect=dialect,
        caller="a1b2c3d4e5f60718293a4b5c6d7e8f90",
        session=str(uuid5(NAMESPACE_OID, f"{which} {chance.randrange(sessions)}")),
        asked_model=asked,
        model=model,
        answered_model=model,
        stream=True,
        status=status,
        error=error,
        stop="" if error else "STOP",
        usage=Usage()
        if error
        else Usage(
            input_tokens=tokens,
            cached_tokens=int(tokens * chance.choice((0, 0.5, 0.8))),
            output_tokens=chance.randint(20, 1_800),
        ),
        notes=_notes(calls, chance),
        calls=calls,
        results=results,
        attempts=tuple(attempts),
        first_byte_ms=wait_ms // 3,
        wait_ms=wait_ms,
        total_ms=wait_ms + chance.randint(1, 9),
        bytes_in=tokens * 4,
        bytes_out=900,
    )


def _names(tools: Sequence[str], chance: random.Random, many: Sequence[int]) -> tuple[str, ...]:
    """The first of a program's tools are its favourites."""
    weights = [1 / (place + 1) for place in range(len(tools))]
    return tuple(chance.choices(tools, weights, k=chance.choice(many)))


def _outcome(name: str, chance: random.Random) -> ClientToolResult:
    size = int(chance.lognormvariate(6.5, 1.3))
    fails = len(name) % 5 / 60
    return ClientToolResult(
        name, chance.random() < fails, size, int(chance.lognormvariate(4 + len(name) % 4, 0.8))
    )


def _notes(calls: Sequence[str], chance: random.Random) -> tuple[Note, ...]:
    mended = [
        Note("mended", f"{name}.timeout", 'text "30" to a number') for name in calls if chance.random() < 0.04
    ]
    return (*_NOTES[: chance.choice((0, 0, 0, 1, 2))], *mended)


def write_past(home: Path, records: Sequence[RequestRecord]) -> None:
    """Into the ledger of the gateway that will live there."""
    home.mkdir(parents=True, exist_ok=True)

    async def write() -> None:
        store = open_store(Config(home=str(home)))
        assert isinstance(store, SqliteStore)
        try:
            lines = [
                LedgerEntry(
                    id=one.id,
                    at_ms=int(one.started_s * 1000),
                    session=one.session,
                    data=msgspec.json.encode(one),
                )
                for one in records
            ]
            sums = merge(one for record in records for one in tallies_of(record, LimitsConfig()))
            tallies = [Tally(day=one.day, kind=one.kind, labels=one.labels, sums=one.sums) for one in sums]
            for start in range(0, len(lines), 500):
                await store.ledger.add(lines[start : start + 500], ())
            await store.ledger.add((), tallies)
        finally:
            await store.close()

    with ThreadPoolExecutor(1) as thread:  # the browser's driver has a loop of its own in this one
        thread.submit(asyncio.run, write()).result()
