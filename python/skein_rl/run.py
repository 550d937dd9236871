# SPDX-License-Identifier: Apache-2.0
"""Starts a run with `skein train` and follows what it writes."""

from __future__ import annotations

import atexit
import collections
import json
import os
import pathlib
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from types import TracebackType
from typing import IO, Any, Optional, Union

import numpy as np

from skein_rl.errors import SkeinError
from skein_rl.policy import Policy, load
from skein_rl.programs import code_of, environment, last_line, program

# The shipped configurations: the wheel's, or those of the clone that this file is in.
CONFIGS = pathlib.Path(__file__).resolve().parent / "configs"
if not CONFIGS.is_dir() and (CONFIGS.parents[2] / "configs").is_dir():
    CONFIGS = CONFIGS.parents[2] / "configs"
USAGE, UNAVAILABLE = 64, 69
_DIRECTORY = "run directory: "
_LOOK_AGAIN_SECONDS = 0.2
_REMEMBERED_LINES = 200


def train(config: Union[str, os.PathLike[str], None] = None, *, settings: Optional[Mapping[str, Any]] = None,
          quiet: bool = False, **flags: Any) -> Run:
    """Starts `skein train` and returns as soon as it has its folder.

    `config` is a YAML file, or the name of one in CONFIGS if there is no such file. Each keyword is a flag of `skein train`
    with _ for - (seed=1, env="CartPole-v1", steps=1e6, no_eval=True); `settings` are any settings by their names
    ({"ppo.lr": 1e-3}), NumPy's numbers too. What the run prints goes to standard error, unless `quiet`. The run ends with
    this process, however that ends.
    `callbacks` may be a class or function instead of its name (callbacks=watch.Watch).
    An environment of one's own in Python (env="python:my_env:make") runs in this Python, unless SKEIN_PYTHON or
    env.external.python say otherwise. SkeinError: the program refused; nothing was started.
    """
    settings = dict(settings or {})
    config = None if config is None else _found(config)
    command = [str(program()), "train", "--json", "--exit-with-parent"]
    if config is not None:
        command += ["--config", os.fspath(config)]
    for name, value in flags.items():
        flag = "--" + name.replace("_", "-")
        value = _name_of(value) if name == "callbacks" and not isinstance(value, (str, bool, type(None))) else value
        value = value.item() if isinstance(value, np.generic) else value
        if value is True:
            command.append(flag)
        elif value is not None and value is not False:
            whole = isinstance(value, float) and value.is_integer()  # 1e6, of which str makes 1000000.0
            command += [flag, str(int(value) if whole else value)]
    for name, value in settings.items():
        command += ["--set", f"{name}={_yaml(name, value)}"]
    return Run(command, quiet)


class Run:
    """A run of `skein train`. Iterating gives the line of metrics.jsonl of each iteration as it is trained, those of
    sessions before too, and ends with the run, with SkeinError if that failed; any number of iterators may follow it."""

    def __init__(self, command: list[str], quiet: bool = False) -> None:
        self.folder = pathlib.Path()
        self._quiet = quiet
        self._lines: collections.deque[str] = collections.deque(maxlen=_REMEMBERED_LINES)
        self._has_folder = threading.Event()
        self._result = ""
        self._process: subprocess.Popen[str]
        self._started = threading.Event()
        self._start_error: Optional[OSError] = None
        # The program ends with the thread that has started it, so that is one that outlives it.
        self._readers = [threading.Thread(target=self._start, args=(command,), daemon=True)]
        self._readers[0].start()
        self._started.wait()
        if self._start_error is not None:
            raise SkeinError(f"cannot start {command[0]}: {self._start_error.strerror}", UNAVAILABLE) from None
        assert self._process.stdout is not None
        self._readers.append(threading.Thread(target=self._read_result, args=(self._process.stdout,), daemon=True))
        self._readers[1].start()
        atexit.register(self._end_with_python)
        self._has_folder.wait()
        if self.folder == pathlib.Path():
            self._raise_failure()

    @property
    def running(self) -> bool:
        return self._process.poll() is None

    def __iter__(self) -> Iterator[dict[str, Any]]:
        seen = 0
        position = 0
        path = self.folder / "metrics.jsonl"
        while True:
            ended = not self.running  # Before the file is read: what was written until then is not missed.
            lines, position = _complete_lines(path, position)
            for line in lines:
                metrics: dict[str, Any] = json.loads(line)
                if metrics.get("iteration", 0) > seen:
                    seen = metrics["iteration"]
                    yield metrics
            if ended:
                if self._process.returncode != 0:
                    self._raise_failure()
                return
            if not lines:
                try:
                    self._process.wait(_LOOK_AGAIN_SECONDS)
                except subprocess.TimeoutExpired:
                    pass

    def wait(self) -> dict[str, Any]:
        """Waits for the end. What `skein train --json` prints: run_directory, checkpoint, digest, env_steps, evaluation.
        SkeinError: the run failed."""
        try:
            self._process.wait()
        except KeyboardInterrupt:
            self.stop()
            raise
        self._join()
        if self._process.returncode != 0:
            self._raise_failure()
        result: dict[str, Any] = json.loads(self._result)
        return result

    def stop(self) -> dict[str, Any]:
        """Ends the run in order, with a checkpoint, from which the same train() goes on. Returns as wait(); a run that
        has ended is left alone."""
        if self.running:
            self._process.send_signal(signal.SIGTERM)
        return self.wait()

    def policy(self) -> Policy:
        """The policy of the newest checkpoint. SkeinError 65: there is none yet."""
        return load(self.folder)

    def __enter__(self) -> Run:
        return self

    def __exit__(self, kind: Optional[type[BaseException]], error: Optional[BaseException],
                 trace: Optional[TracebackType]) -> None:
        if kind is None:
            self.wait()
        elif self.running:
            self.stop()

    def __repr__(self) -> str:
        return f"<run in {self.folder}, {'running' if self.running else 'ended'}>"

    def _start(self, command: list[str]) -> None:
        try:
            # A group of its own: Ctrl-C reaches it through stop(), once.
            self._process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                             stderr=subprocess.PIPE, text=True, errors="replace",
                                             start_new_session=True, env=environment())
        except OSError as error:
            self._start_error = error
        self._started.set()
        if self._start_error is None:
            assert self._process.stderr is not None
            self._read_progress(self._process.stderr)

    def _read_progress(self, stream: IO[str]) -> None:
        for line in stream:
            self._lines.append(line)
            if line.startswith(_DIRECTORY):
                self.folder = pathlib.Path(line[len(_DIRECTORY):].rstrip("\n")).absolute()
                self._has_folder.set()
            if not self._quiet:
                sys.stderr.write(line)
        self._has_folder.set()

    def _read_result(self, stream: IO[str]) -> None:
        self._result = stream.read()

    def _join(self) -> None:
        for reader in self._readers:
            reader.join()

    def _raise_failure(self) -> None:
        self._process.wait()
        self._join()
        message = last_line("".join(self._lines)) or "skein train ended without a message"
        raise SkeinError(message, code_of(self._process.returncode))

    def _end_with_python(self) -> None:
        if self.running:
            self._process.send_signal(signal.SIGTERM)
            self._process.wait()


def _found(config: Union[str, os.PathLike[str]]) -> pathlib.Path:
    """The file as it is named, or the shipped one of that name."""
    path = pathlib.Path(config)
    shipped = CONFIGS / path.name
    is_bare = path.parent == pathlib.Path()
    return shipped if is_bare and not path.exists() and shipped.is_file() else path


def _name_of(callbacks: Any) -> str:
    """"module:qualname", by which another process can import the class or function. SkeinError: none can."""
    module, name = getattr(callbacks, "__module__", None), getattr(callbacks, "__qualname__", None)
    if not module or not name:
        raise SkeinError(f"callbacks is an object of type {_type_of(callbacks)}; want a class or function that makes it, or "
                         "its name, \"my_module:make\"", USAGE)
    if module == "__main__" or "<" in name:  # <locals>, <lambda>
        where = "is of __main__" if module == "__main__" else "is local"
        raise SkeinError(f"callbacks: {name} {where}, and the run's own process must import it: put it into a file of its own, "
                         "at the top level", USAGE)
    found: Any = sys.modules.get(module)
    for part in name.split("."):
        found = getattr(found, part, None)
    if found != callbacks:
        raise SkeinError(f"callbacks: {module}:{name} is another object than the one that was given; give its name, "
                         "\"my_module:make\"", USAGE)
    return f"{module}:{name}"


def _yaml(name: str, value: Any) -> str:
    """The value of the setting `name` as YAML, which JSON is; a text stays as it is, as after --set in a shell. SkeinError: it
    can be no setting."""

    def refused(what: str) -> SkeinError:
        return SkeinError(f"settings[{name!r}] is of type {_type_of(value)}{what}; want a number, a text, true or false, or a list or "
                          "dictionary of them", USAGE)

    def plain(part: Any) -> Any:
        if isinstance(part, (np.generic, np.ndarray)) and part.dtype.kind in "biufU":
            return part.tolist()
        if isinstance(part, os.PathLike):
            return os.fspath(part)
        raise refused("" if part is value else f" with {_type_of(part)} in it")

    text = plain(value) if isinstance(value, (np.generic, os.PathLike)) else value
    try:
        return text if isinstance(text, str) else json.dumps(text, default=plain)
    except (TypeError, ValueError) as error:  # Its keys, or it has itself in it.
        raise refused(f" ({error})") from None


def _type_of(value: Any) -> str:
    kind = type(value)
    return kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"


def _complete_lines(path: pathlib.Path, position: int) -> tuple[list[str], int]:
    """The whole lines from `position` on, and where they end. Of a file that became shorter, which a run does that goes
    on from a checkpoint, from its beginning."""
    try:
        with open(path, "rb") as file:
            if file.seek(0, os.SEEK_END) < position:
                position = 0
            file.seek(position)
            text = file.read()
    except FileNotFoundError:
        return [], position
    end = text.rfind(b"\n") + 1
    return text[:end].decode().splitlines(), position + end
