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
    from mccprobe.process import end_of_interrupts

    code = main()
    end_of_interrupts()
    sys.exit(code)


if __name__ == "__main__":
    entry()
