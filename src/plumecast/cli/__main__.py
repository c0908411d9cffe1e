"""`python -m plumecast.cli` runs the command line."""

from plumecast.cli import main

main()
