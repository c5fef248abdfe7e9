"""Several processes that play and train the shards of a step, with the same bits as a single process."""
