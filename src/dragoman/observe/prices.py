"""List prices of tokens, in US dollars per million; the price of an unlisted model is unknown.

Standard tier of the paid API, as of 2026-02; https://ai.google.dev/gemini-api/docs/pricing is authoritative.
"""

from __future__ import annotations

import re

import msgspec

from dragoman.ir import Usage

_MILLION = 1_000_000
LONG_PROMPT_TOKENS = 200_000


class Price(msgspec.Struct, frozen=True, kw_only=True):
    """Prices per million tokens; `long` applies when the prompt exceeds `LONG_PROMPT_TOKENS`."""

    input: float
    cached: float
    output: float
    long: Price | None = None


_PRO_25 = Price(input=1.25, cached=0.125, output=10.0, long=Price(input=2.5, cached=0.25, output=15.0))
_PRO_3 = Price(input=2.0, cached=0.2, output=12.0, long=Price(input=4.0, cached=0.4, output=18.0))

#: By full model id; a date or build number may follow it.
PRICES: dict[str, Price] = {
    "gemini-3.1-pro-preview": _PRO_3,
    "gemini-3-pro-preview": _PRO_3,
    "gemini-3-flash-preview": Price(input=0.5, cached=0.05, output=3.0),
    "gemini-2.5-pro": _PRO_25,
    "gemini-2.5-flash": Price(input=0.3, cached=0.03, output=2.5),
    "gemini-2.5-flash-lite": Price(input=0.1, cached=0.01, output=0.4),
}
_BUILD_SUFFIX = re.compile(r"-\d[\d-]*$")


def list_price(model: str) -> Price | None:
    bare = model.rpartition("/")[2]
    return PRICES.get(bare) or PRICES.get(_BUILD_SUFFIX.sub("", bare))


def cost_usd(usage: Usage, price: Price) -> float:
    if price.long is not None and usage.input_tokens > LONG_PROMPT_TOKENS:
        price = price.long
    fresh = usage.input_tokens - usage.cached_tokens
    spent = fresh * price.input + usage.cached_tokens * price.cached + usage.output_tokens * price.output
    return spent / _MILLION
