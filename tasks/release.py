"""The report and the package of a run as Prefect tasks, with a link and a card in the UI."""

from __future__ import annotations

from pathlib import Path

from prefect import task
from prefect.artifacts import create_link_artifact, create_markdown_artifact

from rc1_lib.release.package import Package, write_package
from rc1_lib.release.ready import check_ready
from rc1_lib.release.report.page import Page, write_page
from rc1_lib.release.signing import read_key
from rc1_lib.run import Run
from tasks.endings import RETRIES, RETRY_DELAY_S, refusable, retry_when_transient


@task(
    name="report",
    retries=RETRIES,
    retry_delay_seconds=RETRY_DELAY_S,
    retry_condition_fn=retry_when_transient,
    persist_result=False,
)
@refusable
def report(run: Run) -> Page:
    """Write the page, of a green run or a red one."""
    page = write_page(run)
    verdict = f"RED: {'; '.join(page.red)}" if page.red else "GREEN"
    create_link_artifact(
        key="rc1-report",
        link=run.workspace.path(page.path).as_uri(),
        link_text=page.path,
        description=f"RC1 report, {verdict} (SHA-256 {page.sha256})",
    )
    return page


@task(
    name="package",
    retries=RETRIES,
    retry_delay_seconds=RETRY_DELAY_S,
    retry_condition_fn=retry_when_transient,
    persist_result=False,
)
@refusable
def package(run: Run, also: tuple[str, ...], sign: str | None) -> Package:
    """Pack the run, if it may be released.

    Args:
        run: workspace and configuration.
        also: further files to take along, relative to the workspace.
        sign: a private key's file; None: the package is not signed.
    """
    key = None if sign is None else read_key(Path(sign))
    made = write_package(check_ready(run), key, also)
    signed = f"signed by key `{made.signed_by}`" if made.signed_by else "not signed"
    create_markdown_artifact(
        key="rc1-release",
        markdown=f"# Released\n\n`{made.path}`, {made.files} files, {signed}\n\nSHA-256 `{made.sha256}`\n\n"
        f"Check it anywhere: `rc1 verify {Path(made.path).name}`\n",
        description=f"Released: {made.path}, {signed}",
    )
    return made
