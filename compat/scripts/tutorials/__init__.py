"""`tensorflow.examples.tutorials`, which 2.0 left out: the first import of most scripts of 2016."""
