"""`python -m app`, and the console script `bandwatch`."""

from __future__ import annotations

import sys

from app.cli.root import run


def main() -> None:
    """Run the command line and exit with its code. A fault of our own is told without secrets, and is exit code 1."""
    try:
        code = run(sys.argv[1:])
    except Exception as error:  # noqa: BLE001 - the last place where an error can be caught
        from app.bootstrap.logs import describe_crash

        sys.stderr.write(describe_crash(error))
        code = 1
    sys.exit(code)


if __name__ == "__main__":
    main()
