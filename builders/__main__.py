"""``python -m builders``: lists the builders and their sources."""

from __future__ import annotations

import typer

from biasboard.ground.command_line import one_line_errors
from builders.description import all_builders

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


@app.command()
def list_builders() -> None:
    """List the builders and the sources that each can build from."""
    with one_line_errors():
        for builder in all_builders():
            typer.echo(f"{builder.name}: {builder.summary}")
            typer.echo(f"  biasboard build {builder.name} [--source NAME] [--input PATH]")
            width = max(len(source.name) for source in builder.sources)
            for source in builder.sources:
                terms = source.licence if source.redistributable else f"{source.licence}, not for publishing"
                typer.echo(f"  {source.name:<{width}}  {source.summary}")
                typer.echo(f"  {'':<{width}}  into {source.default_out} ({terms})")
                if source.input is not None:
                    typer.echo(f"  {'':<{width}}  --input: {source.input}")


if __name__ == "__main__":
    app()
