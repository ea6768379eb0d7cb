"""The command line ``biasboard``."""

from __future__ import annotations

from biasboard.ground.errors import stop_at_once


def main() -> None:
    """Run the command line under one name, however it was started."""
    stop_at_once()
    # Imported here, because Ctrl-C may come while it is.
    from biasboard.commands import app

    app(prog_name="biasboard")


if __name__ == "__main__":
    main()
