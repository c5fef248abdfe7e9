"""Plays adversarial policies on rows: those of the library and custom ones from files."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

from rc1_lib.attacks.library import Attack
from rc1_lib.attacks.scene import Scene
from rc1_lib.environment.turn import Limits
from rc1_lib.errors import ConfigError, RC1Error
from rc1_lib.records import Row


def played(attack: Attack, rows: Iterable[Row], limits: Limits) -> list[Row]:
    """Return every row with the attack's dialogue instead of its own; ids do not change.

    Raises:
        RowError: when a row lacks a field that the environment needs.
        ConfigError: when the attack does not end its scene.
    """
    found = []
    for row in rows:
        scene = Scene(row, limits)
        attack.play(scene)
        if not scene.over:
            raise ConfigError(
                f"attack '{attack.name}': did not end the dialogue of row '{row['id']}'; let it call scene.answer(...)"
            )
        found.append(scene.row())
    return found


def read_attacks(paths: Sequence[Path]) -> dict[str, Attack]:
    """Read custom policies: each file defines one with a function `play(scene)` and gives it its name.

    Raises:
        ConfigError: when a file is missing, cannot be run, lacks this function or its docstring, or has the name of
            another one.
    """
    found = dict[str, Path]()
    for path in paths:
        if path.stem in found:
            raise ConfigError(
                f"gates.reward_hacking.own: {found[path.stem]} and {path} both define the policy '{path.stem}'; rename "
                "one of the files"
            )
        found[path.stem] = path
    return {name: _read(path) for name, path in found.items()}


def _read(path: Path) -> Attack:
    spec = spec_from_file_location(f"rc1_own_attack_{path.stem}", path) if path.is_file() else None
    if spec is None or spec.loader is None:
        raise ConfigError(f"{path}: Python file not found, but gates.reward_hacking.own names it")
    module = module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except Exception as error:  # whatever the user's code raises
        raise ConfigError(
            f"{path}: cannot be run ({type(error).__name__}: {error}); expected a function play(scene)"
        ) from None
    play: Callable[[Scene], None] | None = getattr(module, "play", None)
    if not callable(play) or not (play.__doc__ or "").strip():
        raise ConfigError(f"{path}: expected a function play(scene) whose docstring says what it does")

    def guarded(scene: Scene) -> None:
        try:
            play(scene)
        except RC1Error:
            raise
        except Exception as error:  # whatever the user's code raises
            raise ConfigError(
                f"{path}: play(scene) failed on the prompt {scene.user[:60]!r} ({type(error).__name__}: {error})"
            ) from error

    return Attack(path.stem, str(play.__doc__).strip().rstrip("."), guarded)
