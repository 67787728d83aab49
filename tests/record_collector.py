"""Somebody who watches the gateway."""

from __future__ import annotations

from dragoman.observe.record import RequestRecord, RequestStages


class RecordCollector:
    """Hears of every request that is over."""

    def __init__(self) -> None:
        self.records: list[RequestRecord] = []

    def on_request_end(self, record: RequestRecord, _stages: RequestStages | None) -> None:
        self.records.append(record)

    async def close(self) -> None:
        return
