"""Prepare a client's history for Google: restore what the client did not keep, repair what Google would refuse."""

from dragoman.translation.repair.hidden_rounds import (
    HIDDEN_KEY_PREFIX,
    HiddenPlaces,
    HiddenRounds,
    decode_hidden,
    hidden_key,
    hidden_places,
    known_tools,
    restore_hidden_rounds,
)
from dragoman.translation.repair.history import HISTORY_AS_TEXT, history_as_text, repair
from dragoman.translation.repair.signatures import (
    NO_SIGNATURES,
    TEXT_KEY_PREFIX,
    SignatureRestorer,
    last_user_message,
    text_key,
)
from dragoman.translation.repair.tool_searches import search_tool_result

__all__ = [
    "HIDDEN_KEY_PREFIX",
    "HISTORY_AS_TEXT",
    "NO_SIGNATURES",
    "TEXT_KEY_PREFIX",
    "HiddenPlaces",
    "HiddenRounds",
    "SignatureRestorer",
    "decode_hidden",
    "hidden_key",
    "hidden_places",
    "history_as_text",
    "known_tools",
    "last_user_message",
    "repair",
    "restore_hidden_rounds",
    "search_tool_result",
    "text_key",
]
