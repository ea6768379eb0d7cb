"""The batch API of the fake endpoint: files and batches, worked through when they are looked at."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from tests.evaluators.fake_endpoint import FakeEndpoint, Received


@dataclass
class FakeBatchEndpoint(FakeEndpoint):
    """A server with a batch API."""

    looks: int = 1
    """How often a batch is looked at before it has ended."""
    forbids_looking: bool = False
    ends_as: str = "completed"
    edit: Callable[[list[dict[str, Any]]], list[dict[str, Any]]] = lambda lines: lines
    """What becomes of the output."""
    spoilt: dict[str, Any] = field(default_factory=dict)
    """What is answered instead, by method and path."""
    uploads: list[list[dict[str, Any]]] = field(default_factory=list)
    batches: dict[str, dict[str, Any]] = field(default_factory=dict)
    answers: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    """Lines of the output, by the number of the input."""

    def other(self, method: str, path: str, content: bytes) -> tuple[int, Any]:
        """Files and batches."""
        if (name := f"{method} {path.partition('?')[0]}") in self.spoilt:
            return 200, self.spoilt[name]
        if (method, path) == ("POST", "/files"):
            # The lines of the one file in a multipart form.
            lines = [line for line in content.decode().split("\n") if line.startswith("{")]
            self.uploads.append([json.loads(line) for line in lines])
            return 200, {"id": f"file-{len(self.uploads) - 1}", "object": "file", "purpose": "batch", "filename": "x"}
        if (method, path) == ("POST", "/batches"):
            batch_id = f"batch-{len(self.batches)}"
            self.batches[batch_id] = {**json.loads(content), "id": batch_id, "status": "validating", "looks": 0}
            return 200, self.batches[batch_id]
        if path.startswith("/batches?"):
            return 200, {"data": list(self.batches.values())}
        if path.startswith("/batches/") and self.forbids_looking:
            return 401, {"error": {"message": "the key has expired"}}
        if path.startswith("/batches/"):
            batch = self.batches.get(path.rpartition("/")[2])
            return (404, {"error": {"message": "no such batch"}}) if batch is None else (200, self._looked_at(batch))
        if path.startswith("/files/"):
            return 200, self._output(path.split("/")[2])
        return super().other(method, path, content)

    def _looked_at(self, batch: dict[str, Any]) -> dict[str, Any]:
        batch["looks"] += 1
        if batch["looks"] > self.looks and batch["status"] != self.ends_as:
            batch["status"] = self.ends_as
            number = batch["input_file_id"].removeprefix("file-")
            if self.ends_as == "failed":
                batch["errors"] = {"data": [{"message": "line 1 is no request"}]}
            else:
                batch |= {"output_file_id": f"out-{number}", "error_file_id": f"err-{number}"}
        return batch

    def _output(self, name: str) -> bytes:
        kind, _, number = name.partition("-")
        if number not in self.answers:
            self.answers[number] = self._work(int(number))
        lines = [line for line in self.answers[number] if (line["response"]["status_code"] == 200) == (kind == "out")]
        edited = self.edit(lines) if kind == "out" else lines
        return "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in edited).encode()

    def _work(self, number: int) -> list[dict[str, Any]]:
        lines = []
        for place, line in enumerate(self.uploads[number]):
            status, answer = self.answer(Received(place, line["url"].removeprefix("/v1"), line["body"], {}, 0.0))
            response = {"status_code": status, "request_id": "made", "body": answer}
            lines.append({"id": "made", "custom_id": line["custom_id"], "response": response, "error": None})
        return lines
