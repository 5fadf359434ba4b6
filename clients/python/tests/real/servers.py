"""A server and a faulty proxy for the tests that need the real program."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Callable

import redis

COMMAND = os.environ.get("CELL_SERVER_CMD", "").split()
"""The words that start the program. The tests of this folder are skipped without it."""


def free_port() -> int:
    """A port that was free a moment ago."""
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        port: int = sock.getsockname()[1]
        return port


class Server:
    """The real server on a free port, with the policy api."""

    def __init__(self) -> None:
        self.port = free_port()
        self.url = f"redis://127.0.0.1:{self.port}"
        self._process: subprocess.Popen[bytes] | None = None
        self.start()

    def start(self) -> None:
        """Starts the program and waits until it answers."""
        command = [*COMMAND, "--port", str(self.port), "--bind", "127.0.0.1"]
        self._process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.STDOUT)
        deadline = time.monotonic() + 30
        while True:
            try:
                self.command("PING")
                return
            except redis.ConnectionError:
                if time.monotonic() > deadline or self._process.poll() is not None:
                    raise
                time.sleep(0.02)

    def command(self, *words: object) -> object:
        """What the server answers to a command."""
        with contextlib.closing(redis.Redis("127.0.0.1", self.port, protocol=2)) as client:
            execute: Callable[..., object] = client.execute_command
            return execute(*words)

    def policy(self, name: str, limits: str) -> None:
        """Makes a policy."""
        self.command("RL.POLICY", "SET", name, "LIMITS", *limits.split())

    def signal(self, number: int) -> None:
        """Sends a signal to the program."""
        assert self._process is not None
        self._process.send_signal(number)

    def hang(self) -> None:
        """Stops the program, and returns once all of its threads stand still."""
        assert self._process is not None
        self.signal(signal.SIGSTOP)
        os.waitid(os.P_PID, self._process.pid, os.WSTOPPED)

    def kill(self) -> None:
        """Ends the program at once."""
        assert self._process is not None
        self.signal(signal.SIGCONT)
        self._process.kill()
        self._process.wait()


class Proxy:
    """A proxy that closes a connection in the place of a share of the replies."""

    def __init__(self, port: int, share: float) -> None:
        self._target, self._share, self._random = port, share, random.Random(33)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"redis://127.0.0.1:{self._listener.getsockname()[1]}"
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        with contextlib.suppress(OSError), client, socket.create_connection(("127.0.0.1", self._target)) as server:
            threading.Thread(target=self._forward, args=(client, server), daemon=True).start()
            while data := server.recv(65536):
                if self._random.random() < self._share:
                    break
                client.sendall(data)
            # Closing alone ends nothing as long as the other thread waits for the client.
            client.shutdown(socket.SHUT_RDWR)

    @staticmethod
    def _forward(client: socket.socket, server: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := client.recv(65536):
                server.sendall(data)
            server.shutdown(socket.SHUT_WR)

    def close(self) -> None:
        """Accepts no more connections."""
        self._listener.close()
