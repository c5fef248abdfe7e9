"""What `rc1 export` writes for another trainer: rows in its form, RC1's reward as it calls it, and the ticket.

Making a folder needs none of the trainers. Only `verl_loop` imports verl, and only `openrlhf_agent` OpenRLHF.
"""
