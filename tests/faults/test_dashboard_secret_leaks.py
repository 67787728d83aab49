"""Secrets planted everywhere a secret can be; nothing the dashboard ever answers holds one (known problems O5, Q11)."""

from __future__ import annotations

import asyncio
import json
import time
from pathlib import Path

from tests.faults.test_secret_leaks import (
    CREDENTIALS,
    SECRETS,
    Ask,
    Seen,
    TellTale,
    ask_everything,
    find,
    gateway_process,
    send,
)

ADMIN = {"x-api-key": CREDENTIALS["an admin's key"]}
LISTS = ("me", "requests?limit=1000", "live", "sessions", "tools", "models")
COSTS = tuple(f"cost?by={by}" for by in ("model", "client", "key", "dialect"))
PATIENCE_S = 30.0


async def test_q11_no_answer_of_the_dashboard_holds_a_secret(tmp_path: Path) -> None:
    google = TellTale()
    async with gateway_process(tmp_path, google) as (process, _):
        await asyncio.to_thread(ask_everything, process.url, google)
        seen, unfolded, replayed = await asyncio.to_thread(look_at_everything, process.url)
    assert unfolded > 100
    assert replayed > 5
    assert {
        path: found for path, answer in seen.items() if (found := find(SECRETS, answer.headers + answer.body))
    } == {}


def look_at_everything(url: str) -> tuple[dict[str, Seen], int, int]:
    """Every path of the dashboard: its lists, each request, and those that can be sent again, sent again."""
    ids = settled(url)
    seen = {path: get(url, path) for path in (*LISTS, *COSTS)}
    seen |= {f"requests/{one}": get(url, f"requests/{one}") for one in ids}
    assert {answer.status for answer in seen.values()} == {200}
    shown = {one: json.loads(seen[f"requests/{one}"].body) for one in ids}
    again = [one for one in ids if not shown[one]["replay"] and shown[one]["record"]["status"] == 200][::4]
    for one in again:
        ask = Ask(f"/dashboard/api/requests/{one}/replay", {})
        seen[f"replay {one}"] = send(url, ask, ADMIN)
    wrong = send(
        url, Ask("/dashboard/api/login", {}), {"authorization": f"Bearer {CREDENTIALS['a wrong key']}"}
    )
    right = send(url, Ask("/dashboard/api/login", {}), ADMIN)
    assert (wrong.status, right.status) == (401, 200)
    unfolded = sum(one["stages"] is not None for one in shown.values())
    return {**seen, "a wrong login": wrong, "a login": right}, unfolded, len(again)


def get(url: str, path: str) -> Seen:
    return send(url, Ask(f"/dashboard/api/{path}", None), ADMIN, method="GET")


def settled(url: str) -> list[str]:
    """All ids, once no more are being written."""
    known: list[str] = []
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline:
        now = [row["id"] for row in json.loads(get(url, "requests?limit=1000").body)["rows"]]
        if now and now == known:
            return now
        known = now
        time.sleep(1.5)
    raise AssertionError("the ledger does not come to rest")
