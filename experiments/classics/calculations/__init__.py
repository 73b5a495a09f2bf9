"""The computations of the programs of 2016 and 2017: a shared counter and queue, matrix powers."""
