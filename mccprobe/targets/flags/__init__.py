"""The flag catalogue: what is publicly known of compiler flags, as data with a source each."""
