"""A Hugging Face Hub on 127.0.0.1: repositories with commits, large files, tags and pull requests, and their download.

Its answers have the form that the real client of ``huggingface_hub`` asks for. A commit is refused if the branch is
not at its ``parentCommit``, unless it opens a pull request. Tests plan faults of single kinds of requests.
"""

from __future__ import annotations

import base64
import hashlib
import json
import threading
from collections import defaultdict, deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import parse_qs, unquote, urlsplit

WRITER, READER = "hf_made_up_writer", "hf_made_up_reader"


class Fault(NamedTuple):
    """What becomes of one request."""

    status: int | None = None
    """Status to answer with; None for the usual answer."""
    after: bool = False
    """True to carry the request out before the fault shows."""
    content: bytes | None = None
    """Content of an answer with status 200, in place of the usual one; an empty one closes the connection instead."""
    first: Callable[[], None] = lambda: None
    """Called before the request is carried out."""


class Commit(NamedTuple):
    """A commit with the content of its whole tree."""

    oid: str
    parent: str | None
    title: str
    files: dict[str, bytes]


@dataclass
class Repository:
    private: bool = False
    commits: dict[str, Commit] = field(default_factory=dict)
    head: str = ""
    tags: dict[str, str] = field(default_factory=dict)
    pull_requests: dict[int, str] = field(default_factory=dict)
    """Pull requests that are not open any more."""

    def add(self, title: str, files: dict[str, bytes], *, on: str | None = None) -> str:
        """Make a commit of a whole tree on the main branch, or on another commit for a pull request."""
        parent = self.head if on is None else on
        told = [len(self.commits), parent, title, [[name, _git_sha1(files[name])] for name in sorted(files)]]
        oid = _git_sha1(json.dumps(told).encode())
        self.commits[oid] = Commit(oid, parent or None, title, files)
        if on is None:
            self.head = oid
        return oid

    def log(self) -> list[Commit]:
        found, oid = [], self.head or None
        while oid is not None:
            found.append(self.commits[oid])
            oid = self.commits[oid].parent
        return found


class HubError(Exception):
    def __init__(self, status: int, message: str, code: str | None = None) -> None:
        super().__init__(message)
        self.status, self.code = status, code


class FakeHub:
    """The state of the Hub, and how each kind of request changes it."""

    def __init__(self) -> None:
        self.address = ""
        self.repositories: dict[str, Repository] = {}
        self.large: dict[str, bytes] = {}
        self.faults: dict[str, deque[Fault]] = defaultdict(deque)
        self.writes: list[str] = []
        """Kind of each request that changes something, in their order; uploads of large files come as `upload`."""
        self.lock = threading.RLock()

    def new(self, name: str, files: dict[str, bytes] | None = None, *, private: bool = False) -> Repository:
        repository = self.repositories[name] = Repository(private=private)
        repository.add("initial commit", {".gitattributes": b"*.parquet filter=lfs\n", **(files or {})})
        return repository

    def repository(self, name: str, token: str | None) -> Repository:
        found = self.repositories.get(name)
        if token not in (None, WRITER, READER):
            raise HubError(401, "Invalid credentials in Authorization header")
        if found is None or (found.private and token is None):
            raise HubError(404 if token else 401, "Repository not found", "RepoNotFound")
        return found

    def commit_at(self, repository: Repository, revision: str) -> Commit:
        proposed = {f"refs/pr/{n}": oid for n, oid in repository.pull_requests.items()}
        named = {"main": repository.head, **repository.tags, **proposed}
        found = repository.commits.get(named.get(revision, revision))
        if found is None:
            raise HubError(404, "Invalid rev id", "RevisionNotFound")
        return found

    def create(self, told: dict[str, Any]) -> Any:
        name = f"{told['organization']}/{told['name']}"
        if name in self.repositories:
            raise HubError(409, "You already created this dataset repo")
        self.new(name, private=told.get("visibility") == "private")
        return {"url": f"{self.address}/datasets/{name}"}

    def preupload(self, repository: Repository, revision: str, told: dict[str, Any]) -> Any:
        files = self.commit_at(repository, revision).files
        ignored = files.get(".gitignore", b"").decode().split()
        answers = []
        for entry in told["files"]:
            name = entry["path"]
            answer = {"path": name, "uploadMode": mode_of(name), "shouldIgnore": name in ignored}
            answers.append(answer | ({"oid": tree_entry(name, files[name])["oid"]} if name in files else {}))
        return {"files": answers}

    def lfs_batch(self, told: dict[str, Any]) -> Any:
        objects = []
        for one in told["objects"]:
            upload = {"actions": {"upload": {"href": f"{self.address}/lfs/{one['oid']}"}}}
            objects.append({"oid": one["oid"], "size": one["size"]} | ({} if one["oid"] in self.large else upload))
        return {"transfer": "basic", "objects": objects}

    def commit(self, name: str, revision: str, lines: list[Any], *, pull_request: bool) -> Any:
        repository = self.repositories[name]
        header = lines[0]["value"]
        parent = header.get("parentCommit", repository.head)
        if not pull_request and parent != self.commit_at(repository, revision).oid:
            raise HubError(412, "A commit has happened since. Please refresh and try again.")
        files = dict(self.commit_at(repository, parent).files)
        for line in lines[1:]:
            change, path = line["value"], line["value"]["path"]
            if line["key"] == "file":
                files[path] = base64.b64decode(change["content"])
            elif line["key"] == "lfsFile":
                files[path] = self.large[change["oid"]]
            elif files.pop(path, None) is None:
                raise HubError(404, "A file with this name doesn't exist", "EntryNotFound")
        oid = repository.add(header["summary"], files, on=parent if pull_request else None)
        answer = {"commitUrl": f"{self.address}/datasets/{name}/commit/{oid}", "commitOid": oid}
        if pull_request:
            number = len(repository.pull_requests) + 1
            repository.pull_requests[number] = oid
            answer["pullRequestUrl"] = f"{self.address}/datasets/{name}/discussions/{number}"
        return answer

    def tag(self, repository: Repository, revision: str, told: dict[str, Any]) -> Any:
        commit = self.commit_at(repository, revision)
        if told["tag"] in repository.tags:
            raise HubError(409, "Tag reference exists already.")
        repository.tags[told["tag"]] = commit.oid
        return {}


def mode_of(name: str) -> str:
    return "lfs" if name.endswith(".parquet") else "regular"


def tree_entry(name: str, content: bytes) -> dict[str, Any]:
    """Describe a file as the tree of a commit does; git holds a pointer in place of a large file."""
    if mode_of(name) == "regular":
        return {"type": "file", "path": name, "size": len(content), "oid": _git_sha1(content)}
    sha256 = hashlib.sha256(content).hexdigest()
    pointer = f"version https://git-lfs.github.com/spec/v1\noid sha256:{sha256}\nsize {len(content)}\n".encode()
    lfs = {"oid": sha256, "size": len(content), "pointerSize": len(pointer)}
    return {"type": "file", "path": name, "size": len(content), "oid": _git_sha1(pointer), "lfs": lfs}


def _git_sha1(content: bytes) -> str:
    return hashlib.sha1(b"blob %d\0" % len(content) + content, usedforsecurity=False).hexdigest()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    hub: FakeHub

    def log_message(self, format: str, *args: Any) -> None:
        """Print nothing."""

    def do_GET(self) -> None:
        split = urlsplit(self.path)
        parts = [unquote(part) for part in split.path.strip("/").split("/")]
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        token = (self.headers.get("Authorization") or "").removeprefix("Bearer ") or None
        kind = self._kind(parts)
        faults = self.hub.faults[kind]
        fault = faults.popleft() if faults else Fault()
        if self.command in ("POST", "PUT") and kind not in ("validate-yaml", "preupload", "batch"):
            self.hub.writes.append(kind)
        fault.first()
        if fault.content is not None:
            self.close_connection = True
            return self._send(200, fault.content, {}) if fault.content else None
        try:
            if fault.status is not None and not fault.after:
                raise HubError(fault.status, "planned by the test")
            with self.hub.lock:
                answer = self._answer(kind, parts, parse_qs(split.query), body, token)
            if fault.status is not None:
                raise HubError(fault.status, "planned by the test")
        except HubError as error:
            content = json.dumps({"error": str(error)}).encode()
            headers = {"X-Error-Message": str(error)} | ({"X-Error-Code": error.code} if error.code else {})
            return self._send(error.status, content, headers)
        if isinstance(answer, bytes):
            return self._send(200, answer, {"ETag": f'"{_git_sha1(answer)}"', "X-Repo-Commit": parts[4]})
        self._send(200, json.dumps(answer).encode(), {"Content-Type": "application/json"})

    do_HEAD = do_POST = do_PUT = do_GET  # noqa: N815

    def _kind(self, parts: list[str]) -> str:
        if parts[:2] == ["api", "datasets"]:
            return parts[4] if len(parts) > 4 else "info"
        if parts[0] == "api":
            return "create" if parts[1] == "repos" else parts[1]
        if parts[0] == "lfs":
            return "upload"
        return parts[3] if len(parts) > 4 and parts[3] == "resolve" else parts[-1]

    def _answer(self, kind: str, parts: list[str], query: dict[str, list[str]], body: bytes, token: str | None) -> Any:
        hub = self.hub
        if kind == "upload":
            hub.large[parts[1]] = body
        if kind in ("", "validate-yaml", "upload"):
            return {"errors": [], "warnings": []}
        if self.command == "POST":
            if token not in (WRITER, READER):
                raise HubError(401, "Invalid username or password.")
            # Who may only read may propose: such uploads name no branch.
            proposes = query.get("create_pr") or (kind == "batch" and "ref" not in json.loads(body))
            if token == READER and not proposes:
                raise HubError(403, "You don't have the required permissions")
        if kind == "create":
            return hub.create(json.loads(body))
        if kind == "batch":
            return hub.lfs_batch(json.loads(body))
        if kind == "resolve":
            repository = hub.repository("/".join(parts[1:3]), token)
            return hub.commit_at(repository, parts[4]).files["/".join(parts[5:])]
        name = "/".join(parts[2:4])
        repository = hub.repository(name, token)
        revision = parts[5] if len(parts) > 5 else "main"
        match kind:
            case "info":
                return {"id": name, "sha": repository.head, "private": repository.private}
            case "revision":
                commit = hub.commit_at(repository, revision)
                files = [{"rfilename": path} for path in sorted(commit.files)]
                return {"id": name, "sha": commit.oid, "private": repository.private, "siblings": files}
            case "refs":
                named = repository.tags.items()
                tags = [{"name": tag, "ref": f"refs/tags/{tag}", "targetCommit": oid} for tag, oid in named]
                return {"branches": [], "converts": [], "tags": tags}
            case "tree":
                return [tree_entry(*file) for file in sorted(hub.commit_at(repository, revision).files.items())]
            case "preupload":
                return hub.preupload(repository, revision, json.loads(body))
            case "commit":
                lines = [json.loads(line) for line in body.splitlines()]
                return hub.commit(name, revision, lines, pull_request=bool(query.get("create_pr")))
            case "tag":
                return hub.tag(repository, revision, json.loads(body))
        raise HubError(404, f"the fake Hub knows no {self.command} {self.path}")

    def _send(self, status: int, content: bytes, headers: dict[str, str]) -> None:
        self.send_response(status)
        for name, value in {**headers, "Content-Length": str(len(content))}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)


def variables(hub: FakeHub, home: Path, token: str | None = WRITER) -> dict[str, Any]:
    """Return the environment of a command that is to reach a Hub, and nothing of this machine."""
    told = {"HF_ENDPOINT": hub.address, "HF_HUB_DISABLE_XET": "1", "HF_HOME": str(home)}
    return {**told, "HF_HUB_OFFLINE": None, "HF_TOKEN": token}


@contextmanager
def serving() -> Iterator[FakeHub]:
    hub = FakeHub()
    handler = type("Handler", (_Handler,), {"hub": hub})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    hub.address = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield hub
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
