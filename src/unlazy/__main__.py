"""`python -m unlazy` is the command `unlazy`."""

from unlazy.cli.main import main

main(prog_name="unlazy")
