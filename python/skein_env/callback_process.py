# SPDX-License-Identifier: Apache-2.0
"""The process in which a run's callback lives.

The learner starts `python -m skein_env.callback_process my_module:Mine` and talks to it by lines of JSON, on its
standard input and output:

    {"begin": {config, folder, env_steps, iteration}}  -> {"has": [methods], "set", "set_at", "stop"}
    {"iteration": LINE OF metrics.jsonl}               -> {"metrics", "set", "set_at", "stop"}
    {"checkpoint": {path, digest, env_steps}}          -> {"stop"}
    {"run_end": {state}}                               -> {}
    any of them                                        -> {"error": TEXT}
"""

from __future__ import annotations

import json
import os
import pathlib
import select
import socket
import sys
import threading
import time
import traceback
from typing import Any, Dict, Optional

from .callbacks import METHODS, Callback, Checkpoint, Run, methods_of, refuse_coroutine
from .errors import EnvError, describe
from .loading import load

# How long a call that hangs may outlive the learner.
_ORPHAN_SECONDS = 10


class Session:
    """Answers a learner's requests with a callback that the function `name` makes."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._callback: Any = None
        self._run: Optional[Run] = None
        self._called: Any = None  # The function of the user's that was called last.

    def answer(self, request: Dict[str, Any]) -> Dict[str, Any]:
        try:
            ((kind, data),) = request.items()
            return self._begin(data) if kind == "begin" else self._tell(kind, data)
        except EnvError as error:
            return {"error": str(error)}
        except BaseException as error:  # Whatever a user's callback throws.
            traceback.print_exc()
            return {"error": describe(error, self._called)}

    def _begin(self, data: Dict[str, Any]) -> Dict[str, Any]:
        function, arguments = load(self._name)
        self._callback = function(**arguments)
        has = methods_of(self._callback)
        for method in has:
            refuse_coroutine(self._name, method, getattr(self._callback, method))
        if not has and not isinstance(self._callback, Callback):
            raise EnvError(f"{self._name} made an object of type {type(self._callback).__name__}, which has none of {', '.join(METHODS)}")
        self._run = Run(**data)
        answer = self._call("begin", "on_run_begin") if "on_run_begin" in has else {}
        return {"has": has, **answer}

    def _tell(self, kind: str, data: Dict[str, Any]) -> Dict[str, Any]:
        run = self._run
        if run is None:
            raise EnvError("the run has not begun")
        if kind == "iteration":
            run.env_steps, run.iteration = data["env_steps"], data["iteration"]
            return self._call(kind, "on_iteration", data)
        if kind == "checkpoint":
            return self._call(kind, "on_checkpoint", Checkpoint(**{**data, "path": pathlib.Path(data["path"])}))
        return self._call(kind, "on_run_end", data["state"])

    def _call(self, kind: str, method: str, *arguments: Any) -> Dict[str, Any]:
        run = self._run
        assert run is not None
        run._call, run._answer = kind, {}
        self._called = getattr(self._callback, method)
        self._called(run, *arguments)
        return run._answer


def _end_with(channel: socket.socket) -> None:
    """Ends this process a while after the learner, even if a call hangs."""
    poll = select.poll()
    poll.register(channel, select.POLLRDHUP)
    poll.poll()
    time.sleep(_ORPHAN_SECONDS)
    os._exit(1)


def main() -> int:
    if len(sys.argv) != 2:
        print("python -m skein_env.callback_process package.module:function; started by skein", file=sys.stderr)
        return 64
    channel = socket.socket(fileno=os.dup(0))
    os.dup2(2, 1)  # What a callback prints is no answer.
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    threading.Thread(target=_end_with, args=(channel,), daemon=True).start()
    session = Session(sys.argv[1])
    for line in channel.makefile("r", encoding="utf-8"):
        # As text, of which half a character is replaced: as an escape it would be no JSON for others.
        channel.sendall((json.dumps(session.answer(json.loads(line)), ensure_ascii=False) + "\n").encode(errors="replace"))
    return 0


if __name__ == "__main__":
    sys.exit(main())
