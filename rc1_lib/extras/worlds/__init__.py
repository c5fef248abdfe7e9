"""The environment for other tools: a folder that OpenEnv serves and verifiers plays, with a manifest.

This package makes the folder without either of them. Only the folder's server imports `openenv_server` (extra
`openenv`), and only the module `rc1_world` imports `verifiers_taskset` (extra `verifiers`).
"""
