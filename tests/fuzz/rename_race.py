"""Exchanges pairs of names as fast as it can, until its standard input closes: `swapper.py A B [A B…]`.

Each pair is swapped by one atomic system call, so that either name always exists: what is a directory at one
moment is a link out of the project at the next.
"""

import ctypes
import os
import select
import sys

RENAME_EXCHANGE = 2
AT_FDCWD = -100
ROUNDS_BETWEEN_LOOKS = 200


def main(names: list[str]) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    pairs = list(zip(map(os.fsencode, names[::2]), map(os.fsencode, names[1::2]), strict=True))
    print("ready", flush=True)
    while not select.select([sys.stdin], [], [], 0)[0]:
        for _ in range(ROUNDS_BETWEEN_LOOKS):
            for one, other in pairs:
                if libc.renameat2(AT_FDCWD, one, AT_FDCWD, other, RENAME_EXCHANGE):
                    sys.exit(f"{one!r}: {os.strerror(ctypes.get_errno())}")


if __name__ == "__main__":
    main(sys.argv[1:])
