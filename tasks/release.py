"""The steps of a release as Prefect tasks: the report, its preconditions, the archive, its verification."""

from __future__ import annotations

from pathlib import Path

from prefect.artifacts import create_markdown_artifact

from rc1_lib.errors import RC1Error
from rc1_lib.release import verifier
from rc1_lib.release.package import Package, read_key, write_package
from rc1_lib.release.ready import Ready, check_ready
from rc1_lib.release.report import Page, write_page
from rc1_lib.run import Run
from tasks.endings import refusable, retried


@retried(name="report page")
@refusable
def report_page(run: Run) -> Page:
    """Write the RC1 report of a passed or failed run, and show the reasons for a failure in the UI."""
    page = write_page(run)
    failed = "".join(f"- FAILED: {reason}\n" for reason in page.failed) or "Everything passed.\n"
    create_markdown_artifact(
        key="rc1-report",
        markdown=f"# RC1 report\n\n`{page.path}`, SHA-256 `{page.sha256}`\n\n{failed}",
        description="failed" if page.failed else "passed",
    )
    return page


@retried(name="ready")
@refusable
def ready(run: Run) -> Ready:
    """Verify every byte of the ticket again, and that the evaluation passed and matches the current files."""
    return check_ready(run)


@retried(name="package")
@refusable
def package(holding: Ready, page: Page, sign: Path | None) -> Package:
    """Write the archive, signed if a key is named."""
    return write_package(holding, None if sign is None else read_key(sign), (page.path,))


@retried(name="verify package")
@refusable
def verified(run: Run, packed: Package, sign: Path | None) -> str:
    """Verify every byte of the archive like `rc1 release --verify`, and return a description.

    Raises:
        RC1Error: names the differences.
    """
    found = verifier.verify(run.workspace.path(packed.path), None if sign is None else read_key(sign).public_key())
    if found.problems:
        raise RC1Error(f"{packed.path}: differs from what was packed: {'; '.join(found.problems)}")
    signed = f"signed by key {packed.signed_by}" if packed.signed_by else "not signed"
    return f"{packed.path}: {packed.files} files, {signed}, SHA-256 {found.sha256}"


@retried(name="release card")
def release_card(page: Page, packed: Package, sentence: str) -> None:
    """Show the release in the UI."""
    create_markdown_artifact(
        key="rc1-release",
        markdown=f"# Release\n\n{sentence}\n\nVerify: `rc1 release --verify {packed.path}`. Report: `{page.path}`.\n",
        description=sentence,
    )
