"""Tool search: tools that are declared to the model only after it has searched for and found them.

It implements Anthropic's and OpenAI's tool search, and keeps requests with very many tools small.
"""

from dragoman.finding.deferred import Deferred
from dragoman.finding.plan import OWN_SEARCH, Plan, Search, plan_search
from dragoman.finding.search import MAX_FOUND, declare_search, run_search

__all__ = [
    "MAX_FOUND",
    "OWN_SEARCH",
    "Deferred",
    "Plan",
    "Search",
    "declare_search",
    "plan_search",
    "run_search",
]
