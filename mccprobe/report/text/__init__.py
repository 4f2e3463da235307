"""Text of the results of tuning, doctor and the catalogues, for the terminal."""
