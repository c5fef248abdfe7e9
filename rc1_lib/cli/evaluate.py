"""`evaluate`: a trained policy on the held-out prompts once more, by PyTorch or llama.cpp."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from rc1_lib.cli.ckpt import found_checkpoint
from rc1_lib.cli.ending import Ending, show_ending
from rc1_lib.cli.quiet import quieten
from rc1_lib.cli.session import Session
from rc1_lib.cli.stages import stages
from rc1_lib.errors import ConfigError

if TYPE_CHECKING:
    from rc1_lib.evaluation.tables import Rows

_ENGINES = ("torch", "gguf")


def evaluate(
    session: Session,
    what: Annotated[
        str, typer.Argument(help="torch: a checkpoint (latest, a step, a path). gguf: a file of `rc1 ckpt gguf`.")
    ] = "latest",
    engine: Annotated[
        str, typer.Option(help="What plays it: torch, the run's own engine; gguf, llama.cpp (extra `gguf`).")
    ] = "torch",
    prompts: Annotated[
        int | None, typer.Option(min=1, help="The first N held-out prompts. Default: all of them.")
    ] = None,
) -> int:
    """Play the held-out prompts again with a trained policy, and compare with its evaluation on record.

    Give the flags of its training. It is offline: nothing is learned from it, and no gate reads its report
    (reports/offline_ENGINE_KEY.json).
    """
    if engine not in _ENGINES:
        raise ConfigError(f"--engine: found '{engine}', expected one of {', '.join(_ENGINES)}")
    if engine == "gguf" and not what.endswith(".gguf"):
        raise ConfigError(f"found '{what}', expected the path of a .gguf file; rc1 ckpt gguf writes one")
    run = session.open()
    session.started = True
    from rc1_lib.evaluation.offline import by_llama_cpp, by_torch, evaluate_offline

    quieten(hub=not run.workspace.find(run.config.base_model).is_dir())
    with stages():
        if engine == "gguf":
            contestant = by_llama_cpp(run, run.workspace.path(what))
        else:
            contestant = by_torch(run, found_checkpoint(session, what))
        path, body = evaluate_offline(run, contestant, prompts)
    from rc1_lib.evaluation.tables import success_rows

    shown: list[Rows] = [success_rows(body, mode) for mode in body["modes"]]
    session.show(*(rows.rich() for rows in shown))
    session.show(f"recorded: {run.workspace.path(body['recorded']['path'])}")
    show_ending(session, Ending("done", f"{what} evaluated again, by {engine}", report=run.workspace.path(path)))
    session.document({**body, "report": path})
    return 0
