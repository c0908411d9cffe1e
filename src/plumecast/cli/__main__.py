"""`python -m plumecast.cli` runs the command line."""

from plumecast.__main__ import main

main()
