"""Tools that are not declared until the model finds them: what waits, how it is searched, what is found."""

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
