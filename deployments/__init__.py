"""Running flows: a local server with the deployments, and single runs that need no running server."""
