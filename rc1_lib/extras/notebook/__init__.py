"""Functions for notebooks; `from rc1_lib import ...` works too.

Each is a thin wrapper around the function behind the command of the same name. It returns polars frames and frozen
dataclasses, which a notebook shows as tables. Wrong input raises an `RC1Error` with an explanation; a failed verdict is
a value to inspect. docs/how-to/notebook.md explains all of them.
"""

from rc1_lib.errors import RC1Error
from rc1_lib.extras.notebook.answer_rules import AnswerRuleCheck, check_answer_rule
from rc1_lib.extras.notebook.pools import Pools, build_pool
from rc1_lib.extras.notebook.scores import Scores, score_dialogues
from rc1_lib.extras.notebook.tickets import Ticket, verify_ticket
from rc1_lib.extras.notebook.verdicts import Verdicts, run_gates
from rc1_lib.extras.notebook.weights import Weights, calibrate_weights
from rc1_lib.rows.frame import read_rows
from rc1_lib.run import open_run

__all__ = [
    "AnswerRuleCheck",
    "Pools",
    "RC1Error",
    "Scores",
    "Ticket",
    "Verdicts",
    "Weights",
    "build_pool",
    "calibrate_weights",
    "check_answer_rule",
    "open_run",
    "read_rows",
    "run_gates",
    "score_dialogues",
    "verify_ticket",
]
