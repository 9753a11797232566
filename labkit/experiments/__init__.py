"""The measurements: each is a function from parameters to a tidy DataFrame."""
