"""The dialogue world for other tools: a folder that OpenEnv serves and verifiers plays, and a manifest that names it.

What the folder holds is made here without either of them. `openenv_server` is imported by the folder's server alone
(extra `openenv`), `verifiers_taskset` by the module `rc1_world` alone (extra `verifiers`).
"""
