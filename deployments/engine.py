"""What the worker starts for a flow run: Prefect's engine, ended by the kernel when the worker dies.

Without that a run whose worker was killed goes on unseen, and writes into the workspace during the next run.
"""

from __future__ import annotations

import os
import runpy

from deployments import children
from rc1_lib.runtime.libraries import quieten

if __name__ == "__main__":
    children.end_with(os.getppid())()
    quieten(hub=True)  # as a command of `rc1` does: its log is the worker's, and the UI's
    runpy.run_module("prefect.engine", run_name="__main__")
