"""Errors that the user can fix: each says what was found, what was expected and what to do."""

from __future__ import annotations


class RC1Error(Exception):
    """Bad input, or a step that cannot run. The command line prints only the message, without a traceback."""


class ConfigError(RC1Error):
    """A configuration that cannot be used."""


class TaskError(RC1Error):
    """An unknown or invalid task."""


class SourceError(RC1Error):
    """A question source that is missing, damaged or too small."""


class TemplateError(RC1Error):
    """A template pack that does not fit its schema."""


class RowError(RC1Error):
    """A pool, shadow or metrics file without rows of RC1's schema."""


class TicketError(RC1Error):
    """A ticket that does not match the current files."""
