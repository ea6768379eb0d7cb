"""A chat endpoint on loopback that answers at once and takes little of the processor; see ``bench_endpoint.py``.

``python tests/bench/chat_server.py`` prints its port and serves until it is stopped.
"""

from __future__ import annotations

import asyncio
import json

CHOICE = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "A"}}
USAGE = {"prompt_tokens": 60, "completion_tokens": 1, "total_tokens": 61}
ANSWER = {
    "id": "1",
    "object": "chat.completion",
    "created": 0,
    "model": "made/model",
    "choices": [CHOICE],
    "usage": USAGE,
}
MODELS = {"object": "list", "data": [{"id": "made/model", "object": "model", "owned_by": "bench"}]}


def reply(status: int, body: object) -> bytes:
    content = json.dumps(body).encode()
    head = f"HTTP/1.1 {status} Status\r\ncontent-type: application/json\r\ncontent-length: {len(content)}\r\n\r\n"
    return head.encode() + content


CHAT, LIST, NONE = reply(200, ANSWER), reply(200, MODELS), reply(404, {"error": {"message": "no such route"}})


class Connection(asyncio.Protocol):
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport, self.received = transport, b""

    def data_received(self, data: bytes) -> None:
        self.received += data
        head, end, body = self.received.partition(b"\r\n\r\n")
        length = head.lower().partition(b"content-length:")[2].split(b"\r\n")[0]
        if end and len(body) >= int(length or 0):
            self.received = b""
            self.transport.write(CHAT if b"/chat/completions" in head else LIST if b"/models" in head else NONE)


async def main() -> None:
    server = await asyncio.get_running_loop().create_server(Connection, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main())
