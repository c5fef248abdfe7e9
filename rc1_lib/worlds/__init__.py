"""The dialogue world for other tools: a folder that OpenEnv serves, and a manifest that names it.

What the folder holds is made here without OpenEnv; `openenv_server` is imported by its server alone (extra `openenv`).
"""
