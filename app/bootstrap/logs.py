"""Logs: events with fields on standard error, cleaned of every secret."""

from __future__ import annotations

import logging
import os
import sys
import threading
import traceback
from types import TracebackType
from typing import Literal

import structlog

from app.secrets import Redactor

LEVELS = {"debug": logging.DEBUG, "info": logging.INFO, "warning": logging.WARNING, "error": logging.ERROR}
QUIET = (
    *("apscheduler", "pgqueuer", "httpx2", "httpcore2", "asyncio", "uvicorn.access", "alembic", "sqlalchemy.engine"),
    *("urllib3", "requests", "apprise"),  # what Apprise sends with; their lines hold paths, which are tokens
)


def set_up_logs(redactor: Redactor, *, level: str, style: Literal["auto", "console", "json"]) -> None:
    """Route structlog and the standard library's logging through one cleaning chain to standard error."""
    console = style == "console" or (style == "auto" and sys.stderr.isatty())
    shared: list[structlog.typing.Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        structlog.processors.format_exc_info,
        redactor,
    ]
    render: structlog.typing.Processor = (
        structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty()) if console else structlog.processors.JSONRenderer()
    )
    structlog.configure(
        processors=[*shared, structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
        wrapper_class=structlog.make_filtering_bound_logger(LEVELS[level]),
        logger_factory=structlog.stdlib.LoggerFactory(),
        cache_logger_on_first_use=True,
    )
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=shared, processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, render]
        )
    )
    root = logging.getLogger()
    root.handlers = [handler]
    root.setLevel(LEVELS[level])
    for name in QUIET:
        logging.getLogger(name).setLevel(logging.WARNING)


def log_last_words() -> None:
    """What no one caught, in any thread, ends in the log too, and not on standard error as it is."""
    log = structlog.get_logger()

    def uncaught(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        if issubclass(kind, KeyboardInterrupt):
            return
        log.critical("crashed", error=f"{kind.__name__}: {error}", exc_info=(kind, error, trace))

    def in_thread(args: threading.ExceptHookArgs) -> None:
        if args.exc_value is not None:
            uncaught(args.exc_type, args.exc_value, args.exc_traceback)

    def unraisable(args: sys.UnraisableHookArgs) -> None:
        if args.exc_value is not None:
            uncaught(args.exc_type, args.exc_value, args.exc_traceback)

    sys.excepthook, threading.excepthook, sys.unraisablehook = uncaught, in_thread, unraisable


def describe_crash(error: BaseException) -> str:
    """The traceback of a command that failed in a way nobody thought of, without what the environment holds of secrets."""
    redactor = Redactor()
    for name, value in os.environ.items():
        redactor.learn_named(name, value)
    return redactor.clean("".join(traceback.format_exception(error)))
