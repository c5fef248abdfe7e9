"""How work is carried out: in batches, in worker processes, cached, with its progress reported."""
