"""`python -m tests.fuzz.run_atheris NAME FOLDER [options of libFuzzer]`: atheris looks for bytes that surprise a reader.

What it found worth keeping stays in the folder, for the next time.
"""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path


def main(argv: list[str]) -> None:
    atheris = import_module("atheris")  # installed where it is needed
    with atheris.instrument_imports(include=["dragoman"], enable_loader_override=False):
        decoders = import_module("tests.fuzz.decoders")
    read, seeds = decoders.DECODERS[argv[1]]
    folder = Path(argv[2])
    folder.mkdir(parents=True, exist_ok=True)
    for number, seed in enumerate(seeds):
        (folder / f"seed-{number}").write_bytes(seed)
    atheris.Setup([argv[0], str(folder), *argv[3:]], read)
    atheris.Fuzz()


if __name__ == "__main__":
    main(sys.argv)
