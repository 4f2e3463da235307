"""The wrapper in front of mcc: generated from `wrappers/mcc`, installed, removed, proved to work."""
