"""The kinds of fault, and constructors for them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import msgspec

from dragoman.emulator.director import ApiRequest, Chunk, Fault
from dragoman.emulator.http_messages import HttpResponse

Unit = Literal["", "seconds", "bytes"]


class FaultKind(msgspec.Struct, frozen=True, kw_only=True):
    """A row of the table of faults. `unit` is the unit of the argument, "" if the fault takes none."""

    name: str
    help: str
    unit: Unit = ""
    default: float = 0
    make: Callable[[float], Fault]


def response_fault(
    name: str, about: str, change: Callable[[HttpResponse, ApiRequest], HttpResponse]
) -> FaultKind:
    fault = Fault(name=name, change_response=change)
    return FaultKind(name=name, help=about, make=lambda _: fault)


def chunk_fault(
    name: str, about: str, change: Callable[[list[Chunk]], list[Chunk]], **more: Any
) -> FaultKind:
    fault = Fault(name=name, change_chunks=change, **more)
    return FaultKind(name=name, help=about, make=lambda _: fault)


def numeric_fault(
    name: str,
    about: str,
    unit: Unit,
    default: float,
    change: Callable[[HttpResponse, ApiRequest, float], HttpResponse],
) -> FaultKind:
    """Return a fault of the response that takes a number."""

    def make(argument: float) -> Fault:
        return Fault(name=name, change_response=lambda answer, asked: change(answer, asked, argument))

    return FaultKind(name=name, help=about, unit=unit, default=default, make=make)
