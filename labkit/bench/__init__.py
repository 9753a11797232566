"""How fast the package is, measured on the machine at hand."""
