"""`dragoman usage`: from the ledger of the settings, for a person, a script and a spreadsheet."""

from __future__ import annotations

import asyncio
import csv
import io
import json
import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from dragoman.cli.inspect import usage
from dragoman.cli.terminal import CommandError
from dragoman.gateway.auth.authenticator import scope_of
from dragoman.observe.usage import GROUPS
from dragoman.store import RedisStore, SqliteStore, Store, Tally
from tests.redis_server import RedisServer

KEY = "dgm-a-key-of-sufficient-length-1"
ADMIN = "dgm-a-key-of-sufficient-length-2"
FILE_KEY = "dgm-a-key-of-sufficient-length-3"
STRANGER = scope_of("AIza-somebodys-own")


def ago(days: int) -> str:
    return (datetime.now(UTC).date() - timedelta(days=days)).isoformat()


def tally(kind: str, labels: tuple[str, ...], day: int = 0, **sums: int) -> Tally:
    return Tally(day=ago(day), kind=kind, labels=labels, sums=sums)


TALLIES = [
    tally(
        "total",
        (scope_of(KEY), "claude-cli", "anthropic", "gemini-2.5-pro"),
        requests=2,
        failed=1,
        input=1500,
        cached=500,
        output=70,
        micro_usd=2_345_678,
        calls=3,
        ms=10,
    ),
    tally(
        "total",
        (STRANGER, "curl", "openai_chat", "gemini-9-ultra"),
        day=2,
        requests=1,
        input=7,
        output=3,
        unpriced=1,
    ),
    tally(
        "total", (scope_of(FILE_KEY), "curl", "gemini", "gemini-2.5-pro"), day=40, requests=1, micro_usd=10
    ),
    tally("session", (scope_of(ADMIN), "=cmd|' /C calc'!A0\x1b[31m"), requests=1, micro_usd=1234),
    tally(
        "tool",
        ("Read", "client"),
        calls=4,
        results=4,
        failed=1,
        bytes=8192,
        ms=6000,
        timed=3,
        repairs=2,
    ),
    tally("tool", ("search", "gateway"), calls=1),
]


async def fill(store: Store) -> None:
    await store.ledger.add([], TALLIES)
    await store.close()


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("GEMINI_API_KEY", "GOOGLE_API_KEY", "DRAGOMAN_CONFIG", "DRAGOMAN_GATEWAY_KEY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("DRAGOMAN_HOME", str(tmp_path))
    monkeypatch.setenv("DRAGOMAN_SERVER_KEYS", f"{KEY}")
    monkeypatch.setenv("DRAGOMAN_SERVER_ADMIN_KEYS", ADMIN)
    (tmp_path / "gateway.key").write_text(FILE_KEY + "\n")
    return tmp_path


@pytest.fixture
def filled(home: Path) -> Path:
    now = datetime.now(UTC).timestamp
    asyncio.run(fill(SqliteStore(home / "state.db", max_age_s=9e9, max_bytes=1 << 24, now=now)))
    return home


def shown(capsys: pytest.CaptureFixture[str], *argv: str) -> list[list[str]]:
    """The cells of the table, by lines."""
    assert usage.run(list(argv)) == 0
    return [re.split(r"\s{2,}", line.strip()) for line in capsys.readouterr().out.splitlines()]


def document(capsys: pytest.CaptureFixture[str], *argv: str) -> dict[str, Any]:
    assert usage.run([*argv, "--json"]) == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


@pytest.mark.usefixtures("filled")
class TestTable:
    def test_by_model(self, capsys: pytest.CaptureFixture[str]) -> None:
        assert shown(capsys) == [
            ["model", "requests", "failed", "input", "cached", "output", "calls", "cost"],
            ["gemini-2.5-pro", "2", "1", "1,500", "500", "70", "3", "$2.35"],
            ["gemini-9-ultra", "1", "·", "7", "·", "3", "·", "?"],
            ["total", "3", "1", "1,507", "500", "73", "3", "$2.35 +?"],
            [f"{ago(29)} to {ago(0)}, UTC"],
            ["+? 1 requests without a known price (gemini-9-ultra): limits.prices sets one"],
        ]

    def test_by_tool(self, capsys: pytest.CaptureFixture[str]) -> None:
        assert shown(capsys, "--by", "tool")[:4] == [
            ["tool", "by", "calls", "results", "failed", "mean time", "repaired", "mean size"],
            ["Read", "client", "4", "4", "1", "2.0 s", "2", "2.0 KiB"],
            ["search", "gateway", "1", "·", "·", "·", "·", "·"],
            ["total", "5", "4", "1", "2.0 s", "2", "2.0 KiB"],
        ]

    def test_names_of_keys_without_secrets(self, capsys: pytest.CaptureFixture[str]) -> None:
        rows = shown(capsys, "--by", "key", "--days", "90")
        assert [row[0] for row in rows[1:4]] == ["key 1", "gateway.key", f"#{STRANGER[:8]}"]

    def test_what_a_client_calls_itself_cannot_paint_the_terminal(
        self, capsys: pytest.CaptureFixture[str]
    ) -> None:
        usage.run(["--by", "session"])
        out = capsys.readouterr().out
        assert "admin key 1" in out
        assert "\x1b" not in out

    def test_days_in_their_order_and_only_those(self, capsys: pytest.CaptureFixture[str]) -> None:
        assert [row[0] for row in shown(capsys, "--by", "day", "--days", "3")[1:3]] == [ago(2), ago(0)]
        assert [row[0] for row in shown(capsys, "--by", "day", "--days", "2")[1:3]] == [ago(0), "total"]
        assert [row[0] for row in shown(capsys, "--by", "day", "--since", ago(40))[1:4]] == [
            ago(40),
            ago(2),
            ago(0),
        ]

    def test_long_tables_are_cut_and_the_total_is_not(self, capsys: pytest.CaptureFixture[str]) -> None:
        rows = shown(capsys, "-n", "1")
        assert rows[2] == ["… and 1 more (-n)"]
        assert rows[3][:2] == ["total", "3"]


@pytest.mark.usefixtures("filled")
class TestForPrograms:
    def test_json_has_every_sum(self, capsys: pytest.CaptureFixture[str]) -> None:
        found = document(capsys, "--by", "model")
        dear, unknown = found["rows"]
        assert dear == {
            "model": "gemini-2.5-pro",
            "requests": 2,
            "failed": 1,
            "left": 0,
            "input": 1500,
            "cached": 500,
            "output": 70,
            "thought": 0,
            "unpriced": 0,
            "calls": 3,
            "repairs": 0,
            "sentinels": 0,
            "retries": 0,
            "ms": 10,
            "wait_ms": 0,
            "cost_usd": 2.345678,
        }
        assert dear.keys() == unknown.keys()
        assert unknown["cost_usd"] is None
        assert found["total"]["cost_usd"] == 2.345678
        assert found["total"]["unpriced"] == 1
        assert found["unpriced_models"] == ["gemini-9-ultra"]
        assert (found["first_day"], found["last_day"]) == (ago(29), ago(0))

    def test_a_tool_has_no_cost(self, capsys: pytest.CaptureFixture[str]) -> None:
        assert "cost_usd" not in document(capsys, "--by", "tool")["rows"][0]

    def test_csv(self, capsys: pytest.CaptureFixture[str]) -> None:
        assert usage.run(["--csv"]) == 0
        dear, unknown = csv.DictReader(io.StringIO(capsys.readouterr().out))
        assert (dear["model"], dear["cost_usd"], dear["requests"], dear["unpriced"]) == (
            "gemini-2.5-pro",
            "2.345678",
            "2",
            "0",
        )
        assert unknown["cost_usd"] == ""

    @pytest.mark.parametrize("by", GROUPS)
    def test_the_columns_do_not_depend_on_what_happened(
        self, capsys: pytest.CaptureFixture[str], by: str
    ) -> None:
        heads = []
        for since in (ago(0), ago(40)):
            assert usage.run(["--csv", "--by", by, "--since", since]) == 0
            heads.append(capsys.readouterr().out.splitlines()[0])
        assert heads[0] == heads[1]
        assert {"calls", "failed", "repairs"} < set(heads[0].split(","))

    def test_no_spreadsheet_runs_a_name(self, capsys: pytest.CaptureFixture[str]) -> None:
        assert usage.run(["--csv", "--by", "session"]) == 0
        (row,) = csv.DictReader(io.StringIO(capsys.readouterr().out))
        assert row["session"].startswith("'=cmd|")


def test_nothing_noted_is_said(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert usage.run([]) == 0
    printed = capsys.readouterr()
    assert printed.out == ""
    assert "no requests are recorded" in printed.err
    assert not (home / "state.db").exists(), "looking makes no state"
    assert document(capsys)["rows"] == []


@pytest.mark.parametrize("argv", [["--since", "yesterday"], ["--days", "0"]])
@pytest.mark.usefixtures("home")
def test_days_that_are_none(argv: list[str]) -> None:
    with pytest.raises(CommandError) as refused:
        usage.run(argv)
    assert refused.value.code == 2


@pytest.mark.usefixtures("home")
def test_a_store_that_is_away_is_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("DRAGOMAN_STORE_URL", f"unix://{tmp_path}/nobody.sock")
    with pytest.raises(CommandError, match="Redis cannot be reached"):
        usage.run([])


@pytest.fixture(scope="module")
def redis(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisServer]:
    server = RedisServer(tmp_path_factory.mktemp("redis")).start()
    yield server
    server.stop()


@pytest.mark.usefixtures("home")
def test_the_ledger_of_many_machines(
    redis: RedisServer, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    asyncio.run(fill(RedisStore(redis.url, max_age_s=60)))
    monkeypatch.setenv("DRAGOMAN_STORE_URL", redis.url)
    assert document(capsys)["total"]["requests"] == 3


def test_colours_are_for_a_terminal(filled: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    screen = Terminal()
    monkeypatch.setattr("sys.stdout", screen)
    usage.run([])
    assert "\x1b[1mmodel" in screen.getvalue()
    assert "\x1b[33mgemini-2.5-pro" in screen.getvalue(), "something failed there"
