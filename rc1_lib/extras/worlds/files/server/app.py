"""RC1's dialogue world, served by OpenEnv: `python -m server.app`, or `uvicorn server.app:app`."""

from pathlib import Path

from rc1_lib.extras.worlds.openenv_server import serve, world_app

app = world_app(Path(__file__).resolve().parents[1])


def main() -> None:
    """Serve it on this machine."""
    serve(app)


if __name__ == "__main__":
    main()
