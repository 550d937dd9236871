# SPDX-License-Identifier: Apache-2.0
"""The processes of one run as scripts/soak.py torments them: coordinator, learner and actors, each actor behind a link
of its own that can be cut or made slow. An actor joins at 127.0.1.N, where its link listens on the ports of coordinator
and learner; a learner that announces a loopback address is looked for at the coordinator's host, so both go over the
link.
"""

import asyncio
import http.client
import json
import os
import pathlib
import random
import re
import signal
import socket
import subprocess
import threading
import time


def free_ports(count):
    """Ports that no connection gets by itself: one that did would keep a process that is started again from its own."""
    first = int(pathlib.Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    ports, found = list(range(max(1024, first - 20000), first)), []
    random.shuffle(ports)
    for port in ports:
        with socket.socket() as listener:
            try:
                listener.bind(("127.0.0.1", port))
            except OSError:
                continue
        found.append(port)
        if len(found) == count:
            return found
    raise RuntimeError(f"there are no {count} free ports below {first}")


def http_get(address, path, timeout=2.0, access=None):
    """The body, or None: nobody answers. `access`: a run with TLS and a token, as (ssl.SSLContext, token)."""
    host, port = address.rsplit(":", 1)
    headers = {}
    if access is None:
        connection = http.client.HTTPConnection(host, int(port), timeout=timeout)
    else:
        connection = http.client.HTTPSConnection(host, int(port), timeout=timeout, context=access[0])
        headers["Authorization"] = f"Bearer {access[1]}"
    try:
        connection.request("GET", path, headers=headers)
        answer = connection.getresponse()
        return answer.read().decode() if answer.status == 200 else None
    except (OSError, http.client.HTTPException):
        return None
    finally:
        connection.close()


class Links:
    """All links, moved by one thread."""

    def __init__(self):
        self.loop = asyncio.new_event_loop()
        threading.Thread(target=self.loop.run_forever, daemon=True).start()

    def run(self, coroutine):
        return asyncio.run_coroutine_threadsafe(coroutine, self.loop).result(timeout=10)


class Link:
    """One actor's way to the others. Cut: bytes stay where they are, as with a cable that is out, until it is in."""

    def __init__(self, links, host, ports):
        self.links, self.host = links, host
        self.rate, self.delay = 0, 0.0
        self.servers, self.tasks = [], set()
        links.run(self._listen(ports))

    async def _listen(self, ports):
        self.open = asyncio.Event()
        self.open.set()
        for port in ports:
            serve = lambda reader, writer, port=port: self._serve(reader, writer, port)
            self.servers.append(await asyncio.start_server(serve, self.host, port))

    async def _serve(self, reader, writer, port):
        self.tasks.add(asyncio.current_task())
        try:
            await self.open.wait()
            there, away = await asyncio.open_connection("127.0.0.1", port)
        except (OSError, asyncio.CancelledError):
            writer.transport.abort()
            return
        pumps = [asyncio.ensure_future(self._pump(reader, away)), asyncio.ensure_future(self._pump(there, writer))]
        try:
            await asyncio.wait(pumps, return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError:
            pass
        for pump in pumps:
            pump.cancel()
        for end in (writer, away):
            end.transport.abort()
        self.tasks.discard(asyncio.current_task())

    async def _pump(self, reader, writer):
        try:
            while True:
                data = await reader.read(16384)
                await self.open.wait()
                if not data:
                    return
                if self.delay or self.rate:
                    await asyncio.sleep(self.delay + (len(data) / self.rate if self.rate else 0))
                    await self.open.wait()
                writer.write(data)
                await writer.drain()
        except (OSError, asyncio.CancelledError):
            return

    def cut(self):
        self.links.loop.call_soon_threadsafe(self.open.clear)

    def slow(self, bytes_per_second, delay):
        self.rate, self.delay = bytes_per_second, delay

    def heal(self):
        self.rate, self.delay = 0, 0.0
        self.links.loop.call_soon_threadsafe(self.open.set)

    def close(self):
        async def stop():
            for server in self.servers:
                server.close()
            for task in list(self.tasks):
                task.cancel()
        self.links.run(stop())


class Process:
    """One program, its output in a file, and what /metrics says of it."""

    def __init__(self, name, command, folder, environment, access=None):
        self.name, self.born, self.access = name, time.monotonic(), access
        self.log_path = folder / f"{name}.log"
        with open(self.log_path, "ab") as log:
            self.start_of_log = log.tell()
            # Who started this script is not whom they are to end with.
            inherited = {name: value for name, value in os.environ.items() if name != "SKEIN_PARENT_PID"}
            self.popen = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT,
                                          env={**inherited, **environment})
        self.metrics_address = None

    @property
    def pid(self):
        return self.popen.pid

    def alive(self):
        return self.popen.poll() is None

    def log(self):
        with open(self.log_path, "rb") as log:
            log.seek(self.start_of_log)
            return log.read().decode(errors="replace")

    def find_in_log(self, pattern, seconds=60):
        until = time.monotonic() + seconds
        while True:
            found = re.search(pattern, self.log())
            if found:
                return found.group(1)
            if not self.alive() or time.monotonic() > until:
                raise RuntimeError(f"{self.name}: no '{pattern}' in its log:\n{self.log()[-2000:]}")
            time.sleep(0.05)

    def metrics(self):
        """Series and their values; empty: it does not answer (yet)."""
        if self.metrics_address is None:
            found = re.search(r"metrics=([0-9.]+:\d+)", self.log())
            if not found:
                return {}
            self.metrics_address = found.group(1)
        values = {}
        for line in (http_get(self.metrics_address, "/metrics", access=self.access) or "").splitlines():
            if line and not line.startswith("#"):
                series, _, value = line.rpartition(" ")
                values[series] = float(value)
        return values

    def usage(self):
        """What must not grow; None: it is gone."""
        try:
            status = pathlib.Path(f"/proc/{self.pid}/status").read_text()
            fds = len(os.listdir(f"/proc/{self.pid}/fd"))
        except OSError:
            return None
        field = lambda name: int(re.search(rf"{name}:\s+(\d+)", status).group(1)) if f"{name}:" in status else 0
        if not field("VmRSS"):
            return None
        series = len(self.metrics())
        return {"rss_mib": field("VmRSS") / 1024, "fds": fds, "threads": field("Threads"), "series": series}

    def signal(self, number):
        self.popen.send_signal(number)

    def kill(self):
        self.popen.kill()
        self.popen.wait()

    def wait(self, seconds):
        """The exit code; None: it runs on."""
        try:
            return self.popen.wait(timeout=seconds)
        except subprocess.TimeoutExpired:
            return None


class Cluster:
    def __init__(self, programs, folder, settings, receipt_faults):
        self.programs, self.folder = programs, folder
        self.history = folder / "history"
        self.history.mkdir(parents=True)
        self.run_directory = folder / "run"
        self.grpc, self.http, self.data = free_ports(3)
        self.settings = settings
        self.receipt_faults = receipt_faults
        self.links, self.link_of = Links(), {}
        self.actors, self.next_actor = {}, 1
        self.coordinator = self.learner = None

    def _start(self, name, program, arguments, environment=None):
        command = [str(self.programs / program), *arguments, "--exit-with-parent"]
        return Process(name, command, self.folder, {"SKEIN_HISTORY": str(self.history), **(environment or {})})

    def start_coordinator(self):
        settings = [word for setting in self.settings for word in ("--set", setting)]
        self.coordinator = self._start("coordinator", "skein-coordinator", [
            *settings, "--listen", f"127.0.0.1:{self.grpc}", "--http", f"127.0.0.1:{self.http}", "--run-id", "soak",
            "--run-dir", str(self.run_directory)])
        self.coordinator.metrics_address = f"127.0.0.1:{self.http}"

    def start_learner(self):
        self.learner = self._start("learner", "skein-learner", [
            "--coordinator", f"127.0.0.1:{self.grpc}", "--run-dir", str(self.run_directory), "--listen",
            f"127.0.0.1:{self.data}"], {"SKEIN_FAULTS": self.receipt_faults} if self.receipt_faults else None)

    def start_actor(self, number=None, faults=""):
        """A new one, or another in the place of `number`."""
        if number is None:
            number, self.next_actor = self.next_actor, self.next_actor + 1
        host = f"127.0.1.{1 + number % 250}"
        if number not in self.link_of:
            self.link_of[number] = Link(self.links, host, [self.grpc, self.data])
        self.actors[number] = self._start(f"actor-{number}", "skein-actor", [
            "--coordinator", f"{host}:{self.grpc}", "--runners", "1"], {"SKEIN_FAULTS": faults} if faults else None)
        return number

    def remove_actor(self, number):
        del self.actors[number]
        self.link_of.pop(number).close()

    def status(self):
        text = http_get(f"127.0.0.1:{self.http}", "/api/status")
        return json.loads(text) if text else None

    def processes(self):
        return [one for one in (self.coordinator, self.learner, *self.actors.values()) if one is not None]

    def kill_all(self):
        for process in self.processes():
            if process.alive():
                process.signal(signal.SIGCONT)
                process.kill()
