"""A changed SDK header tried without touching the SDK: a patched copy earlier in the include path."""
