"""Runs a command with `PERDURE_STORE` naming a database of a PostgreSQL server that lives as long as the command.

python -m servers COMMAND...
"""

import os
import subprocess
import sys

from servers.postgres import NoServer, running


def main(command: list[str]) -> int:
    """The exit code of the command; 3 where no server can be started."""
    if not command:
        sys.stderr.write(__doc__ or "")
        return 2
    try:
        with running() as server:
            environ = {**os.environ, "PERDURE_STORE": server.url("postgres")}
            return subprocess.run(command, env=environ, check=False).returncode
    except NoServer as reason:
        sys.stderr.write(f"{reason}\n")
        return 3


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
