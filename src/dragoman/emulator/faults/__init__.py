"""Every way Google, or the network in front of it, fails: by name, on demand."""

from dragoman.emulator.faults.director import FAULT_HEADER, FaultDirector, Planned, parse_plan
from dragoman.emulator.faults.kind import FaultKind
from dragoman.emulator.faults.table import FAULTS, make_fault, parse_fault

__all__ = [
    "FAULTS",
    "FAULT_HEADER",
    "FaultDirector",
    "FaultKind",
    "Planned",
    "make_fault",
    "parse_fault",
    "parse_plan",
]
