"""The pass table: title in the bisect log <-> pass argument <-> options that switch the pass off."""
