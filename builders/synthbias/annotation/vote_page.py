"""Serves the page on which one annotator votes, to browsers on this machine only.

Other programs and pages cannot vote: every address begins with a token that only the command prints, a request must
name this server as its host, which a page from elsewhere cannot make a browser do, and a change must come from the page
itself. The page loads nothing from anywhere else.
"""

from __future__ import annotations

import hmac
import json
import secrets
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib import resources
from typing import Annotated

import typer

from biasboard.ground import strict_json
from biasboard.ground.command_line import one_line_errors
from biasboard.ground.errors import BiasboardError, ConfigError, DataError
from biasboard.ground.plain_text import printable
from biasboard.ground.strict_json import JsonValue
from builders.synthbias.annotation.annotate_commands import (
    CountUntested,
    DatasetFolder,
    EntrancePercent,
    StateFolder,
    Stop,
    checked_name,
    fitting_state,
)
from builders.synthbias.annotation.annotated import AskedSentence, asked_id, read_annotated
from builders.synthbias.annotation.deciding import Policy, StopRule
from builders.synthbias.annotation.entrance import DEFAULT_PERCENT, EXAMPLES
from builders.synthbias.annotation.session import Session, Turn, sampled_pairs
from builders.synthbias.annotation.state import locked, note_dataset, write_state
from builders.synthbias.annotation.vote_intake import with_entrance
from builders.synthbias.annotation.votes import AnnotatorKind, VoteAnswer, VoteQuestion
from builders.synthbias.minimal_pairs import mentions_in


@one_line_errors("stopped; every vote is kept")
def serve(
    dataset: DatasetFolder,
    state_folder: StateFolder,
    sample: Annotated[
        int | None, typer.Option(min=1, help="Number of pairs to draw; one side of each is asked. Default: all.")
    ] = None,
    seed: Annotated[int, typer.Option(help="Seed that draws the pairs and orders the sentences.")] = 0,
    annotator: Annotated[str, typer.Option(help="Name under which the votes are kept.")] = "local",
    stop_rule: Stop = StopRule.CLEAR,
    count_untested: CountUntested = False,
    entrance_percent: EntrancePercent = DEFAULT_PERCENT,
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port to listen on; 0 picks a free one.")] = 0,
) -> None:
    """Serve a page on this machine on which one annotator votes.

    The entrance test comes first. Each sentence is saved with its last answer, so that the page can be closed and the
    command stopped at any time: the same command goes on.
    """
    annotated = read_annotated(dataset)
    annotator = checked_name(annotator)
    with locked(state_folder):
        state = fitting_state(annotated, state_folder, may_be_new=True)
        recorded = state.annotators.get(annotator)
        if recorded is not None and recorded.kind is AnnotatorKind.MODEL:
            raise ConfigError(f"--annotator {annotator}: is a model; give another name")
        note_dataset(state_folder, annotated.manifest)
        write_state(state_folder, state, with_entrance(state, entrance_percent))
    session = Session(
        annotated=annotated,
        folder=state_folder,
        annotator_id=annotator,
        pairs=sampled_pairs(annotated, sample, seed),
        seed=seed,
        policy=Policy(stop_rule=stop_rule, count_untested=count_untested),
        entrance_percent=entrance_percent,
    )
    server, address = open_server(session, port)
    with server:
        typer.echo(address)
        print("Open the address in a browser on this machine. Stop with Ctrl-C.", file=sys.stderr)
        server.serve_forever()


HOST = "127.0.0.1"
MOST_BYTES = 10_000
"""Maximum size of a request body."""
_IDLE_SECONDS = 30
_HEADERS: Mapping[str, str] = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}
_FILES: Mapping[str, tuple[str, str]] = {
    "": ("index.html", "text/html; charset=utf-8"),
    "page.css": ("page.css", "text/css; charset=utf-8"),
    "page.js": ("page.js", "text/javascript; charset=utf-8"),
}
_JSON = "application/json"


def open_server(session: Session, port: int) -> tuple[ThreadingHTTPServer, str]:
    """Open a server for a session; it listens at once, but answers only when ``serve_forever`` is called.

    Returns:
        The server, and the address of its page.

    Raises:
        ConfigError: the port cannot be used.
    """
    token = secrets.token_urlsafe(24)
    try:
        server = ThreadingHTTPServer((HOST, port), partial(_Handler, session, token))
    except OSError as error:
        raise ConfigError(f"port {port} of {HOST}: {error.strerror or error}; choose another with --port") from error
    return server, f"http://{HOST}:{server.server_port}/{token}/"


class _Handler(BaseHTTPRequestHandler):
    """Answers the requests of the page."""

    server: ThreadingHTTPServer
    timeout = _IDLE_SECONDS
    server_version = "annotation"
    sys_version = ""

    def __init__(self, session: Session, token: str, *connection: object) -> None:
        self._session = session
        self._token = token
        super().__init__(*connection)  # type: ignore[arg-type]

    def log_message(self, format: str, *args: object) -> None:
        """Log nothing, since the line of a request would show the token."""

    def handle(self) -> None:
        """Answer the requests of a connection; a browser that leaves in the middle is no fault."""
        with suppress(ConnectionError):
            super().handle()

    def do_GET(self) -> None:
        """Answer with a file of the page, the current turn or the worked examples."""
        name = self._name()
        if name is None:
            return
        if name in _FILES:
            file, kind = _FILES[name]
            self._send(HTTPStatus.OK, resources.files(__package__).joinpath("page", file).read_bytes(), kind)
        elif name == "turn":
            self._answer(self._session.turn)
        elif name == "instructions":
            self._send_json(HTTPStatus.OK, examples_json())
        else:
            self._refuse(HTTPStatus.NOT_FOUND)

    def do_POST(self) -> None:
        """Take a vote, or take one back."""
        name = self._name()
        if name is None:
            return
        if self.headers.get("Origin") != f"http://{self.headers.get('Host')}":
            self._refuse(HTTPStatus.FORBIDDEN)
        elif self.headers.get("Content-Type") != _JSON:
            self._refuse(HTTPStatus.UNSUPPORTED_MEDIA_TYPE)
        elif name == "vote":
            self._vote()
        elif name == "undo":
            self._answer(self._session.undo)
        else:
            self._refuse(HTTPStatus.NOT_FOUND)

    def _name(self) -> str | None:
        """Return the part of the path after the token; None if the request was refused."""
        port = self.server.server_port
        # A stranger's host name may resolve to this machine (DNS rebinding), but the browser then sends that name.
        if self.headers.get("Host") not in (f"{HOST}:{port}", f"localhost:{port}"):
            self._refuse(HTTPStatus.MISDIRECTED_REQUEST)
            return None
        token, _, name = self.path.removeprefix("/").partition("/")
        if not hmac.compare_digest(token.encode(), self._token.encode()):
            self._refuse(HTTPStatus.NOT_FOUND)
            return None
        return name

    def _vote(self) -> None:
        length = self.headers.get("Content-Length", "")
        # Python refuses to read numbers of more than 4,300 digits.
        if not length.isdecimal() or len(length) > len(str(MOST_BYTES)) or int(length) > MOST_BYTES:
            self._refuse(HTTPStatus.REQUEST_ENTITY_TOO_LARGE)
            return
        body = self.rfile.read(int(length))

        def vote() -> Turn:
            try:
                value = strict_json.loads(body.decode("utf-8"), where="vote")
                if not isinstance(value, dict) or not isinstance(value["answers"], dict):
                    raise ValueError
                item_id = str(value["item_id"])
                answers = {VoteQuestion(name): VoteAnswer(str(answer)) for name, answer in value["answers"].items()}
            except (KeyError, ValueError) as error:
                raise DataError("vote: is no item with answers; load the page again") from error
            return self._session.vote(item_id, answers)

        self._answer(vote)

    def _answer(self, act: Callable[[], Turn]) -> None:
        try:
            status, answer = HTTPStatus.OK, turn_json(act())
        except BiasboardError as error:
            status, answer = HTTPStatus.CONFLICT, {"error": printable(str(error))}
        except OSError as error:
            fault = f"{error.filename or self._session.folder}: {error.strerror}; every vote before this one is kept"
            status, answer = HTTPStatus.INTERNAL_SERVER_ERROR, {"error": fault}
        self._send_json(status, answer)

    def _refuse(self, status: HTTPStatus) -> None:
        # The request body is not read, so that the connection cannot be reused.
        self.close_connection = True
        self._send(status, f"{status.value} {status.phrase}\n".encode(), "text/plain; charset=utf-8")

    def _send_json(self, status: HTTPStatus, value: JsonValue) -> None:
        self._send(status, json.dumps(value).encode(), _JSON)

    def _send(self, status: HTTPStatus, body: bytes, kind: str) -> None:
        self.send_response(status)
        for header, text in {**_HEADERS, "Content-Type": kind, "Content-Length": str(len(body))}.items():
            self.send_header(header, text)
        self.end_headers()
        self.wfile.write(body)


def turn_json(turn: Turn) -> JsonValue:
    """Return a turn as the page reads it."""
    return {
        "phase": turn.phase,
        "annotator": turn.annotator.annotator_id,
        "entrance": turn.annotator.entrance,
        "reason": turn.annotator.reason,
        "done": turn.done,
        "total": turn.total,
        "can_undo": turn.can_undo,
        "sentence": None if turn.sentence is None else _sentence_json(turn.sentence),
    }


def examples_json() -> JsonValue:
    """Return the worked examples as the page reads them."""
    words = {True: "yes", False: "no", None: None}
    return [
        {
            **_sentence_json(example.sentence),
            "answers": [words[answer] for answer in example.answers],
            "why": example.why,
        }
        for example in EXAMPLES
    ]


def _sentence_json(sentence: AskedSentence) -> dict[str, JsonValue]:
    """Return a sentence with its questions, and with the start, end and kind of what the page highlights."""
    pronoun_end = sentence.pronoun_start + len(sentence.pronoun)
    marks = [
        (sentence.pronoun_start, pronoun_end, "pronoun"),
        *(
            (mention.start, mention.end, "occupation")
            for mention in mentions_in(sentence.text).occupations
            if mention.text in (sentence.first, sentence.second)
        ),
    ]
    return {
        "item_id": asked_id(sentence.item_id),
        "text": sentence.text,
        "marks": [list(mark) for mark in sorted(marks)],
        "questions": [{"name": question.value, "text": sentence.ask(question)} for question in VoteQuestion],
    }
