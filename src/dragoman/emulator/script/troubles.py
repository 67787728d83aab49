"""The faults of a script, created from the table of faults."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from dragoman.emulator.direct import Fault
from dragoman.emulator.faults import make_fault
from dragoman.emulator.script.model import FaultReference, ScriptStep
from dragoman.errors import ConfigError


def fault_problem(name: str, argument: Any, *, own_chunks: bool) -> str:
    """Return why a step cannot have this fault, or "".

    `own_chunks` is true for a step that defines its own chunks or HTTP response.
    """
    try:
        fault = make_fault(name, argument)
    except ConfigError as error:
        return error.message
    if own_chunks and fault.on_chunks is not None:
        return f"{name} changes what the model says: it goes with reply, or with no answer at all"
    return ""


def faults_of(step: ScriptStep) -> tuple[Fault, ...]:
    return tuple(make_fault(name, argument) for name, argument in _names_and_arguments(step.fault))


def _names_and_arguments(entry: FaultReference | list[FaultReference] | None) -> Iterator[tuple[str, Any]]:
    if isinstance(entry, list):
        for item in entry:
            yield from _names_and_arguments(item)
    elif isinstance(entry, str):
        yield entry, None
    elif entry is not None:
        yield from entry.items()
