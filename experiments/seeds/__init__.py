"""The parts of the programs that redo the documents of 2016 and 2017."""
