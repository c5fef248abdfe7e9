"""Running work: in batches, in worker processes, cached, and with progress reports."""
