"""Fault injection: every failure of Google, or of the network before it, by name.

A fault is written `name` or `name=argument`. `FaultDirector` injects faults without a script: from a plan, or from a
header of the request.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from dragoman.config.settings import did_you_mean
from dragoman.emulator.director import ApiRequest, DefaultDirector, Director, Fault, ResponsePlan
from dragoman.emulator.errors import ApiError
from dragoman.emulator.faults.kinds import CONTENT_FAULTS, ERROR_FAULTS, NETWORK_FAULTS, FaultKind
from dragoman.errors import ConfigError

__all__ = [
    "FAULTS",
    "FAULT_HEADER",
    "FaultDirector",
    "FaultKind",
    "ScheduledFault",
    "make_fault",
    "parse_fault",
    "parse_scheduled_fault",
]


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


FAULT_HEADER = "x-emulator-fault"
_REPEATED = re.compile(r"(.*)\*\s*(\d+)", re.DOTALL)


class ScheduledFault(msgspec.Struct, frozen=True, kw_only=True):
    """A fault for the first `times` generate requests, or for all requests and counts if None."""

    fault: Fault
    times: int | None = None


def parse_scheduled_fault(text: str) -> ScheduledFault:
    """Parse `NAME[=ARGUMENT][*TIMES]`, such as `overloaded*2` or `cut_after=200`."""
    found = _REPEATED.fullmatch(text)
    if found is None:
        return ScheduledFault(fault=parse_fault(text))
    times = int(found[2])
    if times < 1:
        raise ConfigError(f"a fault happens once or more often, not {times} times")
    return ScheduledFault(fault=parse_fault(found[1]), times=times)


class FaultDirector:
    """Adds faults to the scenes of another director: after its own those of the plan and the header."""

    def __init__(self, inner: Director | None = None, plan: Sequence[ScheduledFault] = ()) -> None:
        self._inner = inner or DefaultDirector()
        self._plan = tuple(plan)
        self._left = [planned.times for planned in self._plan]

    def plan_response(self, api_request: ApiRequest) -> ResponsePlan:
        requested = _read_header(api_request.headers.get(FAULT_HEADER, ""))
        response_plan = self._inner.plan_response(api_request)
        due = [index for index, left in enumerate(self._left) if _is_due(left, api_request)]
        self._count(due, -1)

        def give_back(message: str) -> None:
            """Count the faults as pending again, because the scene was not played."""
            self._count(due, +1)
            if response_plan.on_rejected is not None:
                response_plan.on_rejected(message)

        planned = (self._plan[index].fault for index in due)
        return msgspec.structs.replace(
            response_plan, faults=(*response_plan.faults, *planned, *requested), on_rejected=give_back
        )

    def _count(self, due: Sequence[int], change: int) -> None:
        for index in due:
            left = self._left[index]
            self._left[index] = None if left is None else left + change


def _is_due(left: int | None, api_request: ApiRequest) -> bool:
    return left is None or (left > 0 and api_request.route.method != "countTokens")


def _read_header(value: str) -> list[Fault]:
    try:
        return [parse_fault(word) for word in value.split(",") if word.strip()]
    except ConfigError as error:
        raise ApiError(f"{FAULT_HEADER}: {error.message}") from None
