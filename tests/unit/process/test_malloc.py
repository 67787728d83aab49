"""Memory that a request needed is there for the next one, and a large block still goes back."""

from __future__ import annotations

import subprocess
import sys

import pytest

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="settings of glibc")

#: Page faults of later rounds that each take and give back a few blocks of so many bytes, in a process of its own.
_ROUNDS = """
import resource, sys
from dragoman.process.tuning import tune_malloc
if sys.argv[1] == "kept":
    assert tune_malloc()
def work():
    blocks = [b"x" * int(sys.argv[2]) for _ in range(6)]
for _ in range(5):
    work()
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(100):
    work()
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


def faults(how: str, size: int) -> int:
    command = [sys.executable, "-c", _ROUNDS, how, str(size)]
    return int(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


def test_the_pages_of_a_turn_are_not_fetched_anew_with_every_turn() -> None:
    assert faults("kept", 200_000) < 50 < 5_000 < faults("as it comes", 200_000)


def test_a_large_block_goes_back_to_the_machine() -> None:
    assert faults("kept", 8_000_000) > 100_000
