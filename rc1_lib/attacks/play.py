"""Playing worthless policies on rows, with a policy of one's own from a file beside those of the library."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

from rc1_lib.attacks.library import Attack
from rc1_lib.attacks.scene import Scene
from rc1_lib.environment.limits import Limits
from rc1_lib.errors import ConfigError
from rc1_lib.records import Row


def played(attack: Attack, rows: Iterable[Row], limits: Limits) -> list[Row]:
    """Every row with the attack's dialogue in the place of its own; ids stay those of the rows.

    Raises:
        RowError: when a row lacks what a world is made of.
        ConfigError: when the attack does not bring its scene to an end.
    """
    found = []
    for row in rows:
        scene = Scene(row, limits)
        attack.play(scene)
        if not scene.over:
            raise ConfigError(
                f"attack '{attack.name}': row '{row['id']}' was not brought to an end; let it call scene.answer(...)"
            )
        found.append(scene.row())
    return found


def read_attacks(paths: Sequence[Path]) -> dict[str, Attack]:
    """Policies of one's own: every file is one, its function `play(scene)`, its name the file's.

    Raises:
        ConfigError: when a file is missing, cannot be run, or holds no such function or no docstring for it.
    """
    return {path.stem: _read(path) for path in paths}


def _read(path: Path) -> Attack:
    spec = spec_from_file_location(f"rc1_own_attack_{path.stem}", path) if path.is_file() else None
    if spec is None or spec.loader is None:
        raise ConfigError(f"{path}: there is no such Python file, and gates.reward_hacking.own names it")
    module = module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except (SyntaxError, ImportError, NameError) as error:
        raise ConfigError(f"{path}: cannot be run ({error}); expected a function play(scene)") from None
    play: Callable[[Scene], None] | None = getattr(module, "play", None)
    if not callable(play) or not (play.__doc__ or "").strip():
        raise ConfigError(f"{path}: expected a function play(scene) whose docstring says what it does")
    return Attack(path.stem, str(play.__doc__).strip().rstrip("."), play)
