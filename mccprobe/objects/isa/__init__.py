"""Instruction streams: listings to records, pipes, control flow, 12-byte words, alignment, lint; learned encodings.

No opcode stands in here: what an encoding means comes from a disassembler's text, or from a table
learned from one.
"""
