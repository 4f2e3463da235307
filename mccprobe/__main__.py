"""`python -m mccprobe` and the console script."""

import sys


def entry() -> None:
    """Console-script entry point."""
    from mccprobe.cli import main

    sys.exit(main())


if __name__ == "__main__":
    entry()
