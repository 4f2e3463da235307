"""From a culprit pass to the first bad instruction."""
