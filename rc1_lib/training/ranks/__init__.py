"""Several processes that play and learn the parts of one step, with the bits that one process would come to."""
