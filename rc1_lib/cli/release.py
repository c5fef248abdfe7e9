"""`report`, `release` and `export`: what leaves a workspace."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from rc1_lib.cli.endings import Ending, Failure, end
from rc1_lib.cli.options import Seed
from rc1_lib.cli.session import Session, stages
from rc1_lib.errors import ConfigError, RC1Error

if TYPE_CHECKING:
    from rc1_lib.run import Run

_ANOTHER = "ask for the package again, and compare its SHA-256 with the sender's"


def report(
    session: Session,
    form: Annotated[
        Literal["html", "junit"],
        typer.Option("--format", help="html: one page. junit: the gates as test cases, for CI."),
    ] = "html",
    seed: Seed = None,
) -> int:
    """Write one page about a run, passed or failed, or its gates for a CI server.

    It needs no ticket. The page of a failed run says FAILED at the top. The same files give the same page.
    """
    from rc1_lib.release.junit import write_junit
    from rc1_lib.release.report import write_page

    run = session.open({"pool.seed": seed}, remembered=True)
    page = write_junit(run) if form == "junit" else write_page(run)
    session.show(*(f"failed: {reason}" for reason in page.failed))
    session.show(f"SHA-256 {page.sha256}")
    place, count = run.workspace.path(page.path), len(page.failed)
    if page.failed:
        words = f"report of a run that failed, for {count} reason{'s' if count > 1 else ''}"
        ending = Ending("done", words, [Failure(reason) for reason in page.failed], place)
    else:
        ending = Ending("done", "report of a run that passed", report=place)
    return end(session, ending, {"exit_code": 0, **asdict(page)})


def release(
    session: Session,
    sign: Annotated[
        Path | None, typer.Option(metavar="KEY", help="Sign the package with this private key (ed25519, PEM).")
    ] = None,
    verify: Annotated[
        Path | None,
        typer.Option(metavar="PACKAGE", help="Pack nothing: check every byte of this package, and name what differs."),
    ] = None,
    key: Annotated[
        Path | None,
        typer.Option(metavar="PUBLIC", help="With --verify: require a signature by this public key (ed25519, PEM)."),
    ] = None,
    seed: Seed = None,
) -> int:
    """Pack what others need to check and repeat a run; this needs its ticket and an evaluation that passed.

    The same inputs give the same bytes. Who receives a package checks it with --verify, which needs no network, no
    workspace, and unpacks nothing.
    """
    if verify is not None:
        if sign is not None or seed is not None:
            raise ConfigError("--verify: takes only --key; leave out --sign and --seed")
        return _verify(session, verify, key)
    if key is not None:
        raise ConfigError("--key: checks a package, so name one: --verify PACKAGE")
    from rc1_lib.release.package import read_key, write_package
    from rc1_lib.release.ready import check_ready
    from rc1_lib.release.report import check_passed, write_page

    run = session.open({"pool.seed": seed}, remembered=True)
    private = None if sign is None else read_key(sign)
    ready = check_ready(run)
    page = write_page(run)
    check_passed(run, page)
    package = write_package(ready, private, (page.path,))
    place = run.workspace.path(package.path)
    session.show(f"package: {place}, {package.files} files, SHA-256 {package.sha256}")
    session.show(f"signed by key {package.signed_by}" if package.signed_by else "not signed: --sign KEY")
    ending = Ending("done", f"package of {package.files} files", report=run.workspace.path(page.path))
    return end(session, ending, {"exit_code": 0, **asdict(package)})


def _verify(session: Session, package: Path, key: Path | None) -> int:
    from rc1_lib.provenance.signatures import read_public
    from rc1_lib.release import verifier

    public = None if key is None else read_public(key, f"--key {key}")
    if key is not None and public is None:
        raise RC1Error(f"--key {key}: is not a public key, expected ed25519 in PEM (-----BEGIN PUBLIC KEY-----)")
    found = verifier.verify(package, public)
    session.show(*verifier.verdict_lines(found))
    count = len(found.problems)
    failures = [Failure(problem, _ANOTHER) for problem in found.problems]
    words = f"{package.name}, {f'{count} problems' if count else f'{len(found.files):,} files are whole'}"
    parts = ("problems", "files", "sha256", "signed", "signature_checked")
    document = {"exit_code": 2 if count else 0, **{name: getattr(found, name) for name in parts}}
    return end(session, Ending("fail" if count else "pass", words, failures), document)


def export(
    session: Session,
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="A new folder in the workspace.")],
    to: Annotated[Literal["trl", "verl", "openrlhf", "hf"], typer.Option(help="For which trainer.")],
    seed: Seed = None,
) -> int:
    """Export the training rows for another trainer: rows in its form, RC1's reward as it calls it, how to start it.

    This needs a valid ticket, which goes along with the SHA-256 of every file. The same inputs give the same bytes.
    Held-out questions stay here. The reward has no judge's share.
    """
    from rc1_lib.extras.exports.package import export_for

    run = session.open({"pool.seed": seed}, remembered=True)
    target = session.new_folder("DIR", folder)
    with stages():
        document = export_for(run, to, target)
    session.show(f"exported: {target}", *_left_out(run))
    words = f"{document['rows']['count']:,} training rows for {to}; {target.name}/README.md says how to start it"
    return end(session, Ending("done", words), {"folder": str(target), **document})


def _left_out(run: Run) -> list[str]:
    share = run.config.training.reward.judge
    return [f"the judge's share, {share:g} of the reward, is left out, because no judge is called there"] * bool(share)
