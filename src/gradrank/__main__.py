"""The entry of the command line: an interrupt ends it quietly from the first moment on, while packages are imported too."""

import os
import signal
import sys
from typing import Any


class _Interrupted(KeyboardInterrupt):
    """An interrupt that can be caught for good.

    Python notes a KeyboardInterrupt of just that class which leaves the text of an `exec`, as every dataclass runs one, and
    under ``python -m`` then ends by the signal, whatever the program returns.
    """


def _interrupt(*_: Any) -> None:
    raise _Interrupted


def main() -> None:
    """Run the command line and exit; every error is one line on stderr."""
    if sys.stdout is None:  # closed by the caller: what is printed goes nowhere
        sys.stdout = open(os.devnull, "w")  # noqa: PTH123, SIM115
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:  # not where the caller has it ignored
        signal.signal(signal.SIGINT, _interrupt)
    try:
        from gradrank.cli import run

        code = run(sys.argv[1:])
    except KeyboardInterrupt:
        print("gradrank: interrupted; nothing was written", file=sys.stderr)  # noqa: T201
        code = 130
    sys.exit(code)


if __name__ == "__main__":
    main()
