"""DPO on the policy's own takes: of every prompt the best take is to become likelier than the worst."""
