"""Parts of the programs that reproduce the experiments of 2016 and 2017."""
