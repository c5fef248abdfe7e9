"""`serve`: a Prefect server with RC1's deployments."""

from __future__ import annotations

from rc1_lib.cli.session import Session


def serve(session: Session) -> int:
    """Start a Prefect server with RC1's deployments, and serve them until interrupted."""
    from deployments.serve import main

    session.open()  # a configuration that is refused is refused before a server comes up
    main()
    return 0
