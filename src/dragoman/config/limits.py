"""Quotas of gateway keys and conversations, and prices; each setting has its reason beside it."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

OptionalLimit = Annotated[int, msgspec.Meta(ge=0)]
Money = Annotated[float, msgspec.Meta(ge=0)]
ModelName = Annotated[str, msgspec.Meta(min_length=1)]
QuotaWindow = Literal["minute", "hour", "day", "month"]


class QuotaConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Limits for one time window of the UTC calendar; 0 means no limit."""

    requests: OptionalLimit = 0
    tokens: OptionalLimit = 0  # in and out together
    usd: Money = 0.0


class PriceConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """US dollars per million tokens."""

    input: Money
    output: Money
    cached: Money | None = None  # unset: as input


class LimitsConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    key: dict[QuotaWindow, QuotaConfig] = {}  # of each key that calls
    session: dict[QuotaWindow, QuotaConfig] = {}  # of each conversation
    repeated_calls: OptionalLimit = (
        0  # the same call with the same result so often in one conversation, 0: no limit
    )
    prices: dict[ModelName, PriceConfig] = {}  # instead of the built-in table, which may be old
