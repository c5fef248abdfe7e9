"""Checks that engine, strategy and custom policies, which are called by name, have the right signatures."""

from __future__ import annotations

import ast
import inspect
from importlib import import_module
from pathlib import Path
from typing import Any

from rc1_lib.config.engines import ENGINES, STRATEGIES, Spec, own_name
from rc1_lib.doctor.finding import Finding
from rc1_lib.run import Run

_ENGINE = ("setup", "train_step", "eval_step", "state_dict", "load_state_dict", "close")
_STRATEGY = ("attach_engine", "on_batch")
_PLAY = "play"


def look_at_signatures(run: Run) -> Finding:
    """Check the run's engine and strategy, and every file of `gates.reward_hacking.own`."""
    from rc1_lib.training.api import Engine, Strategy

    training = run.config.training
    engine, strategy = own_name(training.engine), training.strategy
    own = run.config.gates.reward_hacking.own
    faults = [
        *_faults(f"engine {engine}", ENGINES[engine], Engine, _ENGINE),
        *_faults(f"strategy {strategy}", STRATEGIES[strategy], Strategy, _STRATEGY),
        *(f"{path}: {fault}" for path in own if (fault := policy_fault(run.workspace.find(path)))),
    ]
    if faults:
        return Finding(
            "; ".join(faults), "implement the methods described in docs/how-to/own-engine.md and docs/reward.md"
        )
    return Finding(f"engine {engine}, strategy {strategy}, policies of your own: {len(own)}")


def _faults(what: str, spec: Spec, seam: type, names: tuple[str, ...]) -> list[str]:
    module, _, name = spec.place.partition(":")
    try:
        found = getattr(import_module(module), name)
    except (ImportError, AttributeError) as error:
        return [f"{what}: {spec.place} cannot be imported ({error})"]
    return [f"{what}: {fault}" for fault in misfits(found, seam, names)]


def misfits(found: Any, seam: type, names: tuple[str, ...]) -> list[str]:
    """The methods of `found` that cannot be called like those of `seam`, with each argument by position."""
    faults = []
    for name in names:
        wanted = inspect.signature(getattr(seam, name))
        method = getattr(found, name, None)
        if not callable(method):
            faults.append(f"has no {name}{wanted}")
            continue
        try:
            inspect.signature(method).bind(*wanted.parameters)
        except TypeError as error:
            faults.append(f"{name}{inspect.signature(method)} cannot be called as {name}{wanted} ({error})")
    return faults


def policy_fault(path: Path) -> str:
    """Why a file is not a custom policy; "" if it is one. The file is parsed, not run."""
    try:
        module = ast.parse(path.read_bytes())
    except OSError as error:
        return f"cannot be read ({error.strerror})"
    except (SyntaxError, ValueError) as error:
        return f"is not valid Python ({error})"
    plays = [node for node in module.body if isinstance(node, ast.FunctionDef) and node.name == _PLAY]
    if not plays:
        return f"has no function {_PLAY}(scene)"
    if not (ast.get_docstring(plays[-1]) or "").strip():
        return f"{_PLAY} has no docstring that says what it does"
    return (
        "" if _takes_one_argument(plays[-1].args) else f"{_PLAY}({ast.unparse(plays[-1].args)}) does not take one scene"
    )


def _takes_one_argument(arguments: ast.arguments) -> bool:
    named = [*arguments.posonlyargs, *arguments.args]
    required = len(named) - len(arguments.defaults)
    return required <= 1 and bool(named or arguments.vararg) and None not in arguments.kw_defaults
