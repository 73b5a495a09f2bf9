"""Updates of the network of 2016, by the package and beside it."""
