"""Fault injection: every failure of Google, or of the network before it, by name."""

from dragoman.emulator.faults.director import (
    FAULT_HEADER,
    FaultDirector,
    ScheduledFault,
    parse_scheduled_fault,
)
from dragoman.emulator.faults.kind import FaultKind
from dragoman.emulator.faults.table import FAULTS, make_fault, parse_fault

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
