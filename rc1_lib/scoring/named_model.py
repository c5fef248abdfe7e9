"""Whether the model that is asked for is the judge's own: `SCORER_PROVIDER` names another judge and no model of it."""

from __future__ import annotations

from rc1_lib.config.file import Layer, merged, read_yaml
from rc1_lib.errors import ConfigError
from rc1_lib.run import Run


def check_model(run: Run) -> None:
    """Refuse another judge than the file's by the model, and at the prices, that the file has for its own.

    Raises:
        ConfigError: saying what to name.
    """
    judge = run.config.judge
    keys = {override.partition("=")[0].strip() for override in run.overrides}
    if judge.model is None or "judge.provider" not in keys or keys & {"judge", "judge.model"}:
        return
    written = merged([Layer(file, read_yaml(file)) for file in run.config_files])
    whose = written["judge"].get("provider", judge.provider)
    if whose != judge.provider:
        raise ConfigError(
            f"judge.provider is '{judge.provider}' (SCORER_PROVIDER or the command line), but judge.model is "
            f"'{judge.model}', which {run.config_path.name} has for {whose}; name its own by --set judge.model=NAME, "
            f"and set judge.prices to it"
        )
