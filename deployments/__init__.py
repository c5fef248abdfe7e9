"""Bringing flows up: a local server with the deployments, and runs that need nothing running beforehand."""
