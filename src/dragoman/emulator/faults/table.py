"""All faults by name, and the notation `name` or `name=argument`."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from dragoman.config.keys import did_you_mean
from dragoman.emulator.direct import Fault
from dragoman.emulator.faults.content import CONTENT_FAULTS
from dragoman.emulator.faults.errors import ERROR_FAULTS
from dragoman.emulator.faults.kind import FaultKind
from dragoman.emulator.faults.network import NETWORK_FAULTS
from dragoman.errors import ConfigError

FAULTS: Mapping[str, FaultKind] = {
    kind.name: kind for kind in (*ERROR_FAULTS, *CONTENT_FAULTS, *NETWORK_FAULTS)
}


def make_fault(name: str, argument: Any = None) -> Fault:
    """Return the fault of this name, with its default if there is no argument.

    Raise ConfigError for an unknown name or an invalid argument.
    """
    kind = FAULTS.get(name)
    if kind is None:
        hint = did_you_mean(name, FAULTS) or "; dragoman emulator --list-faults lists them"
        raise ConfigError(f"there is no fault {name!r}{hint}")
    if argument is None:
        return kind.make(kind.default)
    if not kind.unit:
        raise ConfigError(f"the fault {name} takes no argument")
    if isinstance(argument, bool) or not isinstance(argument, int | float) or not 0 <= argument < math.inf:
        raise ConfigError(f"the fault {name} takes {kind.unit}, not {argument!r}")
    return kind.make(argument)


def parse_fault(text: str) -> Fault:
    """Parse `overloaded` or `cut_after=200`."""
    name, equals, argument = (part.strip() for part in text.partition("="))
    if not equals:
        return make_fault(name)
    try:
        number = float(argument)
    except ValueError:
        make_fault(name)  # raises for an unknown name, which is the more helpful error
        raise ConfigError(f"the argument of {name} is not a number: {argument!r}") from None
    return make_fault(name, number)
