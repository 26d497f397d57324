"""The root of the command line: imports a command only when it is called, and turns errors into exit codes."""

from __future__ import annotations

import importlib
import importlib.util
import json
import os
import sys
from collections.abc import Mapping, Sequence

import click

from app.errors import BandwatchError, ConfigError, NotFoundError

DEBUG = "BANDWATCH_DEBUG"
"""Set to anything, a fault of ours shows its traceback."""
COMMANDS: Mapping[str, tuple[str, str]] = {
    "catalog": ("app.cli.catalog", "Show the catalogue of hardware, models and quantizations."),
    "check": ("app.cli.check", "Validate a config file."),
    "db": ("app.cli.db", "Migrate, inspect and prune the database."),
    "demo": ("app.cli.demo", "Everything at once on simulated providers."),
    "diagnose": ("app.cli.diagnose", "Find out why a target is slow, or impossibly fast."),
    "expect": ("app.cli.expect", "Compute what a deployment should reach."),
    "export": ("app.cli.export", "Write runs as CSV, NDJSON or Parquet."),
    "keys": ("app.cli.keys", "Create, list and revoke API keys."),
    "probe": ("app.cli.probe", "Measure an endpoint now, without a database."),
    "replay": ("app.cli.replay", "Read recorded response bodies as a probe would."),
    "serve": ("app.cli.serve", "Run the service."),
}
"""Name -> (module with a click command named `command`, one line of help). A command without its module is not shown."""


class LazyGroup(click.Group):
    """A click group that imports a command when it is called, so that `expect` does not pay for `serve`."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        """The names of all commands that are there."""
        return sorted(name for name, (module, _) in COMMANDS.items() if _exists(module))

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002 - click's signature
        """The command of that name, imported now."""
        if cmd_name not in COMMANDS or not _exists(COMMANDS[cmd_name][0]):
            return None
        found = importlib.import_module(COMMANDS[cmd_name][0]).command
        return found if isinstance(found, click.Command) else None

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Help without importing anything."""
        rows = [(name, COMMANDS[name][1]) for name in self.list_commands(ctx)]
        if rows:
            with formatter.section("Commands"):
                formatter.write_dl(rows)


def _exists(module: str) -> bool:
    return importlib.util.find_spec(module) is not None


def _show_version(ctx: click.Context, _option: click.Parameter, wanted: bool) -> None:  # noqa: FBT001 - click's signature
    """Looked up only when it is asked for: reading package metadata costs more than the calculator."""
    if not wanted:
        return
    from importlib.metadata import PackageNotFoundError, version

    try:
        found = version("bandwatch")
    except PackageNotFoundError:
        found = "0+source"
    click.echo(f"bandwatch, version {found}")
    ctx.exit()


@click.command(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--version", is_flag=True, expose_value=False, is_eager=True, callback=_show_version, help="Show the version and exit."
)
def root() -> None:
    """Measure how fast LLM providers are, and whether that is as fast as their hardware allows."""


def run(arguments: Sequence[str]) -> int:
    """Run one command. Returns 0 done, 1 the work failed, 2 wrong usage or config; never lets a traceback out."""
    try:
        result = root.main(args=list(arguments), prog_name="bandwatch", standalone_mode=False)
    except click.exceptions.Abort:
        return 130
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except BandwatchError as error:
        _explain(error, as_json="--json" in arguments)
        return error.exit_code
    except BrokenPipeError:
        sys.stderr.close()
        return 0
    except KeyboardInterrupt:
        return 130
    except Exception as error:  # noqa: BLE001 - the last place before a traceback
        return _unexpected(error, as_json="--json" in arguments)
    return result if isinstance(result, int) else 0


def _unexpected(error: Exception, *, as_json: bool) -> int:
    """A fault of ours: one sentence, free of secrets; the traceback where it is asked for. Returns the exit code."""
    while isinstance(error, ExceptionGroup) and len(error.exceptions) == 1:
        error = error.exceptions[0]
    if isinstance(error, BandwatchError):
        _explain(error, as_json=as_json)
        return error.exit_code
    if os.environ.get(DEBUG):
        raise error
    from app.secrets import Redactor

    words = str(error).strip().splitlines()
    text = Redactor().clean(f"{type(error).__name__}: {words[0]}" if words else type(error).__name__)
    print(f"bandwatch: this should not have happened: {text} ({DEBUG}=1 shows where)", file=sys.stderr)
    return 1


def _explain(error: BandwatchError, *, as_json: bool) -> None:
    """One clear sentence (or one line per config problem) on standard error; a JSON document too when that was asked for."""
    prefix = "" if isinstance(error, ConfigError) else "bandwatch: "
    print(f"{prefix}{error}", file=sys.stderr)
    if as_json:
        near = list(error.near) if isinstance(error, NotFoundError) else []
        print(json.dumps({"error": {"type": error.slug, "title": error.title, "detail": str(error), "near": near}}))
