"""What the worker starts for a flow run: Prefect's engine, killed by the kernel when the worker dies.

Otherwise a run whose worker was killed would continue unnoticed, and write into the workspace during the next run. Of
missed nights only the newest is run.
"""

from __future__ import annotations

import os
import runpy
from uuid import UUID

from deployments import children
from rc1_lib.runtime.libraries import quieten

if __name__ == "__main__":
    children.end_with(os.getppid())()
    quieten(hub=True)  # as for a command of `rc1`; the output goes to the worker's log and the UI
    from deployments.missed_runs import cancel_if_missed

    run_id = os.environ.get("PREFECT__FLOW_RUN_ID")
    if not (run_id and cancel_if_missed(UUID(run_id))):
        runpy.run_module("prefect.engine", run_name="__main__")
