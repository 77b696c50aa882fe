"""The entry of the command line: an interrupt ends it quietly from the first moment on, while packages are imported too."""

import os
import sys


def main() -> None:
    """Run the command line and exit; every error is one line on stderr."""
    if sys.stdout is None:  # closed by the caller: what is printed goes nowhere
        sys.stdout = open(os.devnull, "w")  # noqa: PTH123, SIM115
    try:
        from gradrank.cli import run

        code = run(sys.argv[1:])
    except KeyboardInterrupt:
        print("gradrank: interrupted; nothing was written", file=sys.stderr)  # noqa: T201
        code = 130
    sys.exit(code)


if __name__ == "__main__":
    main()
