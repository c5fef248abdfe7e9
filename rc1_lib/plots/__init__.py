"""Pictures: of the reward's evidence, of an evaluation, of a training, and the small ones of report pages."""
