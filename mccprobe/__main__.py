"""`python -m mccprobe` and the console script."""

import sys


def entry() -> None:
    """Console-script entry point. `--version` alone needs no option parser, and build systems ask it often."""
    if sys.argv[1:] == ["--version"]:
        from mccprobe import __version__
        from mccprobe.base.console import Console

        Console().result(f"mccprobe {__version__}")
        return
    from mccprobe.base.process import end_of_interrupts
    from mccprobe.cli import main

    code = main()
    end_of_interrupts()
    sys.exit(code)


if __name__ == "__main__":
    entry()
