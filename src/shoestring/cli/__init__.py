"""The command line. Nothing heavy is imported before a command runs, so that --help is instant."""

from shoestring.cli.main import main

__all__ = ["main"]
