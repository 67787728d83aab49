"""Tool search: tools that are declared to the model only after it has searched for and found them.

It implements Anthropic's and OpenAI's tool search, and keeps requests with very many tools small.
"""

from dragoman.translation.tool_search.plan import (
    GATEWAY_SEARCH,
    DeferredTools,
    SearchFunction,
    SearchPlan,
    plan_search,
)
from dragoman.translation.tool_search.search import MAX_FOUND, declare_search, run_search

__all__ = [
    "GATEWAY_SEARCH",
    "MAX_FOUND",
    "DeferredTools",
    "SearchFunction",
    "SearchPlan",
    "declare_search",
    "plan_search",
    "run_search",
]
