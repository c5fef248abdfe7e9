"""`serve`: a Prefect server with RC1's deployments."""

from __future__ import annotations

from typing import Annotated

import typer

from rc1_lib.cli.session import Session


def serve(
    session: Session,
    port: Annotated[int, typer.Option(min=1, max=65535, help="Where the server listens, on this machine only.")] = 4200,
    server: Annotated[
        str, typer.Option(help="Join a Prefect server that runs already, by the address of its API.", metavar="ADDRESS")
    ] = "",
) -> int:
    """Serve RC1's flows from a Prefect server with a web page, until interrupted.

    It starts a server, or joins one that runs already (--server). A webhook at the address in RC1_WEBHOOK_SECRET_URL,
    or in the block rc1-webhook, is called for every run that does not pass.
    """
    from deployments.serve import serve as serve_until_interrupted

    return serve_until_interrupted(session.workspace.root, port, server)
