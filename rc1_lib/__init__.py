"""RC1: a gated pipeline that decides whether a post-training run has earned its compute.

Everything RC1 knows lives in this package, and nothing in it imports Prefect: `tasks/` and `flows/` call it. What a
notebook calls can be imported from here; it is loaded when it is asked for, so that the package alone weighs nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rc1_lib.notebook import (
        AnswerRuleCheck,
        Pools,
        RC1Error,
        Scores,
        Ticket,
        Verdicts,
        Weights,
        build_pool,
        calibrate_weights,
        check_answer_rule,
        open_run,
        read_rows,
        run_gates,
        score_dialogues,
        verify_ticket,
    )
else:

    def __getattr__(name: str) -> object:
        # By a name that no reader of imports sees: the code behind a file is what its builder imports, and that is not
        # all that a notebook may call.
        if name in __all__:
            return getattr(import_module("rc1_lib.notebook"), name)
        raise AttributeError(f"module 'rc1_lib' has no attribute '{name}'")

    def __dir__() -> list[str]:
        return sorted({*globals(), *__all__})


__all__ = [
    "AnswerRuleCheck",
    "Pools",
    "RC1Error",
    "Scores",
    "Ticket",
    "Verdicts",
    "Weights",
    "__version__",
    "build_pool",
    "calibrate_weights",
    "check_answer_rule",
    "open_run",
    "read_rows",
    "run_gates",
    "score_dialogues",
    "verify_ticket",
]
__version__ = "0.1.0"
