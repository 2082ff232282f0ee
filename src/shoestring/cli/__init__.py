"""The command line. Nothing heavy is imported before a command runs, so that help comes at once."""

from shoestring.cli.main import main

__all__ = ["main"]
