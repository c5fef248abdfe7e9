"""RC1: a gated pipeline that decides whether a post-training run is worth its compute.

All of RC1's logic is in this package, and nothing in it imports Prefect: `tasks/` and `flows/` call it. The functions
for notebooks can be imported from here; they are loaded on first use, so importing the package costs nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rc1_lib.extras.notebook import (
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
        # Imported dynamically, so that the import graph does not see it: a file depends on what its builder imports,
        # not on everything that a notebook may call.
        if name in __all__:
            return getattr(import_module("rc1_lib.extras.notebook"), name)
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
