"""Run the `dragoman` command with `python -m dragoman`."""

import sys

from dragoman.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
