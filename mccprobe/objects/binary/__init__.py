"""Bytes to records: device ELF, vendor notes, offload bundles, kernel metadata. Knows no compiler."""
