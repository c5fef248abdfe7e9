"""The handful of things that people call from a notebook; `from rc1_lib import ...` gives them too.

Each is a thin face of the function that the command of the same name calls, and gives back polars frames and frozen
dataclasses that a notebook shows as tables. What is wrong with an input rises as an `RC1Error`, in a sentence; a red
verdict is a value, since one wants to look at it. docs/how-to/notebook.md walks through all of them.
"""

from rc1_lib.errors import RC1Error
from rc1_lib.notebook.answer_rules import AnswerRuleCheck, check_answer_rule
from rc1_lib.notebook.pools import Pools, build_pool
from rc1_lib.notebook.scores import Scores, score_dialogues
from rc1_lib.notebook.tickets import Ticket, verify_ticket
from rc1_lib.notebook.verdicts import Verdicts, run_gates
from rc1_lib.notebook.weights import Weights, calibrate_weights
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
