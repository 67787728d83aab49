"""Prepare a client's history for Google: restore what the client did not keep, repair what Google would refuse."""

from dragoman.repair.hidden import (
    HIDDEN_KEY,
    Hidden,
    Places,
    hidden_key,
    hidden_places,
    known_tools,
    read_hidden,
    weave,
)
from dragoman.repair.history import repair
from dragoman.repair.searches import search_answer
from dragoman.repair.signatures import NOTHING_TO_SIGN, TEXT_KEY, Signing, last_user, text_key
from dragoman.repair.told import TOLD, tell_history

__all__ = [
    "HIDDEN_KEY",
    "NOTHING_TO_SIGN",
    "TEXT_KEY",
    "TOLD",
    "Hidden",
    "Places",
    "Signing",
    "hidden_key",
    "hidden_places",
    "known_tools",
    "last_user",
    "read_hidden",
    "repair",
    "search_answer",
    "tell_history",
    "text_key",
    "weave",
]
