"""A provider that tells the truth: each chunk holds the instant at which it was written, and when its request arrived.

    python -m benchmarks.truth.server CHUNKS FIRST_MS EVERY_MS [CERTIFICATE]

Prints its port. All instants are nanoseconds of the machine's monotonic clock, which its processes share. The request's
arrival is the kernel's stamp, and a chunk is handed to the kernel right after its instant was read, so that a late server
makes chunks late and never the truth wrong.
"""

from __future__ import annotations

import asyncio
import json
import socket
import ssl
import sys
import time

import uvloop

from app.probe.stamps import ANCILLARY, KernelClock, ask_for_stamps

HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\nconnection: close\r\n\r\n"
CERTIFICATE = 4


def framed(data: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(data), data)


def event(**more: object) -> bytes:
    base = {"id": "chatcmpl-truth", "object": "chat.completion.chunk", "created": 1764547200, "model": "truth"}
    return b"data: " + json.dumps({**base, **more}).encode() + b"\n\n"


class Stream:
    """One connection, written on schedule by timers of the loop."""

    def __init__(self, sock: socket.socket, plan: tuple[int, int, int], tls: ssl.SSLContext | None) -> None:
        self.sock, self.loop = sock, asyncio.get_running_loop()
        self.chunks, self.first_ms, self.every_ms = plan
        self.incoming, self.outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self.tls = tls.wrap_bio(self.incoming, self.outgoing, server_side=True) if tls else None
        self.kernel = ask_for_stamps(sock)
        self.clock = KernelClock()
        self.came = 0

    def send(self, data: bytes) -> None:
        if self.tls is not None:
            self.tls.write(data)
            data = self.outgoing.read()
        sent = self.sock.send(data)
        if sent != len(data):
            raise OSError("the reader is too slow for the truth")

    async def receive(self) -> tuple[bytes, int]:
        """Bytes, and when they came."""
        ready = self.loop.create_future()
        self.loop.add_reader(self.sock.fileno(), lambda: ready.done() or ready.set_result(None))
        try:
            await ready
        finally:
            self.loop.remove_reader(self.sock.fileno())
        data, ancillary, _, _ = self.sock.recvmsg(65536, ANCILLARY)
        stamp, _ = self.clock.stamp(ancillary)
        self.came = stamp
        if not data:
            raise ConnectionError("the client hung up")
        return data, stamp

    async def handshake(self) -> None:
        while self.tls is not None:
            try:
                self.tls.do_handshake()
            except ssl.SSLWantReadError:
                if self.outgoing.pending:
                    await self.loop.sock_sendall(self.sock, self.outgoing.read())
                self.incoming.write((await self.receive())[0])
                continue
            await self.loop.sock_sendall(self.sock, self.outgoing.read())
            return

    async def request(self) -> int:
        """When the last byte of the request came."""
        got = b""
        while True:
            if self.incoming.pending:  # came with the end of the handshake
                data, stamp = b"", self.came
            else:
                data, stamp = await self.receive()
            if self.tls is not None:
                self.incoming.write(data)
                data = b""
                try:
                    while piece := self.tls.read(65536):
                        data += piece
                except ssl.SSLWantReadError:
                    pass
            got += data
            head, found, body = got.partition(b"\r\n\r\n")
            lines = head.lower().split(b"\r\n")
            if found and len(body) >= next((int(one[15:]) for one in lines if one.startswith(b"content-length:")), 0):
                return stamp

    async def run(self) -> None:
        try:
            await self.handshake()
            arrived = await self.request()
            self.send(HEAD + framed(event(choices=[{"index": 0, "delta": {"role": "assistant", "content": ""}}])))
            began = self.loop.time()
            for number in range(self.chunks):
                await asyncio.sleep(max(0.0, began + (self.first_ms + number * self.every_ms) / 1000 - self.loop.time()))
                choices = [{"index": 0, "delta": {"content": f" w{number}"}, "logprobs": None, "finish_reason": None}]
                before, after = event(choices=choices, arrived=arrived, wrote=0).split(b'"wrote": 0')
                size = len(before) + len(after) + 28
                self.send(b'%x\r\n%b"wrote": %019d%b\r\n' % (size, before, 10**18 + time.monotonic_ns(), after))
            usage = {"prompt_tokens": 60, "completion_tokens": self.chunks, "total_tokens": 60 + self.chunks}
            end = event(choices=[{"index": 0, "delta": {}, "finish_reason": "stop"}]) + event(choices=[], usage=usage)
            self.send(framed(end + b"data: [DONE]\n\n") + b"0\r\n\r\n")
        except ConnectionError:
            pass
        finally:
            self.sock.close()


async def main(plan: tuple[int, int, int], certificate: str | None) -> None:
    tls = None
    if certificate is not None:
        tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        tls.load_cert_chain(certificate)
    door = socket.create_server(("127.0.0.1", 0), backlog=1024)
    door.setblocking(False)
    print(door.getsockname()[1], flush=True)
    loop = asyncio.get_running_loop()
    async with asyncio.TaskGroup() as group:
        while True:
            sock, _ = await loop.sock_accept(door)
            sock.setblocking(False)
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            group.create_task(Stream(sock, plan, tls).run())


if __name__ == "__main__":
    chunks, first_ms, every_ms = (int(each) for each in sys.argv[1:CERTIFICATE])
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(main((chunks, first_ms, every_ms), sys.argv[CERTIFICATE] if len(sys.argv) > CERTIFICATE else None))
