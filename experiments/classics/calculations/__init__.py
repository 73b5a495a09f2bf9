"""What the experiments of 2016 and 2017 compute: a shared counter and queue, powers of matrices."""
