"""The GPU that mcc compiles for where the user names none."""

DEFAULT_ARCH = "mp_22"  # the S4000 of the article
