"""`python -m perdure` is the command `perdure`."""

from perdure.cli.main import main

main()
