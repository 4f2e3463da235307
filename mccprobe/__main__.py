"""`python -m mccprobe` and the console script."""

import sys


def entry() -> None:
    """Console-script entry point. `--version` alone needs no option parser, and build systems ask it often."""
    if sys.argv[1:] == ["--version"]:
        from mccprobe import __version__
        from mccprobe.console import Console

        Console().result(f"mccprobe {__version__}")
        return
    from mccprobe.cli import main

    sys.exit(main())


if __name__ == "__main__":
    entry()
