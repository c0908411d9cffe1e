"""`python -m plumecast` runs the command line."""

from plumecast.cli import main

main()
