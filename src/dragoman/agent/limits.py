"""Limits of the agent's loop (steps, tokens, cost), and what a session has used."""

from __future__ import annotations

import msgspec

from dragoman import ir
from dragoman.agent.events import TurnEnd
from dragoman.observe.prices import cost_usd, list_price


class AgentLimits(msgspec.Struct, frozen=True, kw_only=True):
    """Limits of a session; 0 means no limit. Steps count per turn, tokens and cost per session."""

    max_steps: int = 50
    max_tokens: int = 0
    max_cost_usd: float = 0.0
    warn_after_repeats: int = 3  # equal calls until the model gets a message that it repeats itself
    stop_after_repeats: int = 5  # equal calls until the turn is stopped
    compact_at: float = 0.8  # share of the context window


class SessionUsage(msgspec.Struct, frozen=True, kw_only=True):
    """What a session has used; `cost_usd` is None if the price of any part is unknown."""

    requests: int = 0
    input_tokens: int = 0
    cached_tokens: int = 0
    output_tokens: int = 0
    cost_usd: float | None = 0.0

    @property
    def tokens(self) -> int:
        return self.input_tokens + self.output_tokens

    def plus(self, usage: ir.Usage, model: str) -> SessionUsage:
        """Return the usage with one more request added."""
        price = list_price(model)
        cost = None if price is None or self.cost_usd is None else self.cost_usd + cost_usd(usage, price)
        return SessionUsage(
            requests=self.requests + 1,
            input_tokens=self.input_tokens + usage.input_tokens,
            cached_tokens=self.cached_tokens + usage.cached_tokens,
            output_tokens=self.output_tokens + usage.output_tokens,
            cost_usd=cost,
        )


def exceeded_limit(limits: AgentLimits, usage: SessionUsage, steps: int) -> TurnEnd | None:
    """Return the stop for the first limit that forbids another request, or None."""
    if limits.max_steps and steps >= limits.max_steps:
        return TurnEnd("max_steps", f"the limit of {limits.max_steps} steps for one turn is reached")
    if limits.max_tokens and usage.tokens >= limits.max_tokens:
        return TurnEnd("max_tokens", f"{usage.tokens:,} tokens are used, the limit is {limits.max_tokens:,}")
    if limits.max_cost_usd and usage.cost_usd is None:
        return TurnEnd(
            "max_cost", "the price of this model is unknown, so the limit in dollars cannot be enforced"
        )
    if limits.max_cost_usd and usage.cost_usd is not None and usage.cost_usd >= limits.max_cost_usd:
        return TurnEnd(
            "max_cost", f"${usage.cost_usd:.4f} are spent, the limit is ${limits.max_cost_usd:.4f}"
        )
    return None
