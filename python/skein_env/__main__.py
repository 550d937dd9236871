# SPDX-License-Identifier: Apache-2.0
"""python -m skein_env package.module:function [--listen HOST:PORT]"""

from __future__ import annotations

import argparse
import json
import os
import sys
from typing import Any, Dict

from .adapters import make_batch
from .batch import Batch
from .errors import EnvError, end_on_interrupt
from .loading import load
from .version import about


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m skein_env", description="Serves environments in Python to Skein by gRPC."
    )
    parser.add_argument("function", help="package.module:function[?name=value&...], which makes an environment")
    parser.add_argument("--num-envs", type=int, default=None, help="the most environments of one env group")
    parser.add_argument("--listen", default="127.0.0.1:0", help="HOST:PORT (default: a free port of this host)")
    parser.add_argument("--name", default="", help="serve only grpc://HOST:PORT/NAME")
    parser.add_argument("--token-file", default=None, help="a token that clients must have")
    parser.add_argument("--tls-cert", default=None, help="with --tls-key and --tls-ca: TLS, for clients of that CA")
    parser.add_argument("--tls-key", default=None)
    parser.add_argument("--tls-ca", default=None)
    parser.add_argument("--max-streams", type=int, default=256, help="the most env groups at a time (default: 256)")
    parser.add_argument("--local", action="store_true", help=argparse.SUPPRESS)  # Started by skein.
    parser.add_argument("--dtypes", action="store_true", help=argparse.SUPPRESS)  # For `skein env check`.
    parser.add_argument("--arguments", default="", help=argparse.SUPPRESS)
    parser.add_argument("--version", action="version", version=about())
    return parser


def main() -> int:
    args = _parser().parse_args()

    def make(count: int, arguments: Dict[str, Any]) -> Batch:
        if args.num_envs is not None and count > args.num_envs:
            raise EnvError(f"{count} environments are wanted (rollout.envs_per_runner), this server has {args.num_envs}")
        function, in_name = load(args.function)
        return make_batch(function, count, {**in_name, **arguments})

    if args.dtypes:
        from .dtypes import report
        from .local import read_arguments

        end_on_interrupt()
        function, in_name = load(args.function)
        print(json.dumps(report(function, {**in_name, **read_arguments(args.arguments)})))
        return 0
    if args.local:
        from .local import local_fd, serve_local

        return serve_local(make, local_fd())
    from .remote import serve_remote

    return serve_remote(
        make,
        args.listen,
        name=args.name,
        token_file=args.token_file,
        tls_cert=args.tls_cert,
        tls_key=args.tls_key,
        tls_ca=args.tls_ca,
        max_streams=args.max_streams,
    )


if __name__ == "__main__":
    code = main()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)  # Libraries of simulators may hang in their exit handlers.
