"""The command line. Nothing heavy is imported before a command runs, so that --help is instant."""

try:
    from shoestring.cli.main import main
except KeyboardInterrupt:  # Ctrl-C before there is anything to save
    raise SystemExit(130) from None

__all__ = ["main"]
