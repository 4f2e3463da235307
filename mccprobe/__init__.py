"""mccprobe: from "this compiler flag gives wrong numbers" to the pass, the function and a confirmed answer."""

__version__ = "0.1.0"
