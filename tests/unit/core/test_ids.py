"""Words for ids: of a fixed form, and never the same twice, whoever asks."""

from __future__ import annotations

import os
import re
import threading

from dragoman import ids
from dragoman.ids import new_id

FORM = re.compile(r"[a-z2-7]{16}")


def test_every_token_is_new_and_plain() -> None:
    made = [new_id() for _ in range(1_000)]
    assert len(set(made)) == 1_000
    assert all(map(FORM.fullmatch, made))


def test_a_process_that_is_split_off_draws_its_own() -> None:
    new_id()
    assert ids._ready
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        os.write(writing, " ".join(new_id() for _ in range(100)).encode())
        os._exit(0)
    os.waitpid(child, 0)
    os.close(writing)
    with os.fdopen(reading) as told:
        theirs = set(told.read().split())
    assert len(theirs) == 100
    assert theirs.isdisjoint(new_id() for _ in range(100))


def test_threads_never_get_the_same() -> None:
    made: list[str] = []

    def draw() -> None:
        made.extend([new_id() for _ in range(2_000)])

    threads = [threading.Thread(target=draw) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(made)) == len(made) == 8_000
