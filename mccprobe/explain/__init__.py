"""From a culprit pass to a report: flag sets, screens, first bad instruction, workarounds, reduction."""
