"""Bytes to records to what they mean on a device."""
