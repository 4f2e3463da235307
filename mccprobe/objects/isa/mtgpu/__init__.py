"""MTGPU machine code without the SDK: cut at bit 31, classes, registers and branches by an open table.

The tables are data (`data/*.json`), one for each encoding: mp_21 and mp_22 share one, mp_31 has its own. They
are measured from public objects by `tools/mtgpu`; each rule carries its counts and a confidence.
"""
