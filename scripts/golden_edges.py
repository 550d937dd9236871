# SPDX-License-Identifier: Apache-2.0
"""Finds starts from which one step leads exactly to an end of what a task of Gymnasium takes for healthy."""

import typing

import mujoco
import numpy as np


class Edge(typing.NamedTuple):
    """An end: the coordinate of the start that moves it, and what else the start has."""
    what: str    # "qpos" or "qvel", which is what counts, or "site": the height of the tip, which qpos moves.
    index: int
    end: float
    low: float   # In between the coordinate is looked for: from one side of the end to the other.
    high: float
    qpos: dict = {}  # Number -> value; the others are those of a reset without noise.
    qvel: dict = {}


FOLDED_HOPPER = {3: -2.0, 4: -2.2}
FOLDED_WALKER = {3: -1.8, 4: -2.2, 6: -1.8, 7: -2.2}
EDGES = {
    "Ant": [Edge("qpos", 2, 0.2, 0.6, 1.5, qvel={2: -20.0}), Edge("qpos", 2, 1.0, 0.9, 1.1)],
    "Hopper": [
        Edge("qpos", 1, 0.7, 0.65, 0.75, FOLDED_HOPPER),
        Edge("qpos", 2, -0.2, -0.25, -0.15),
        Edge("qpos", 2, 0.2, 0.15, 0.25),
        Edge("qvel", 5, -100.0, -400.0, -50.0, {1: 3.0}),
        Edge("qvel", 5, 100.0, 50.0, 400.0, {1: 3.0}),
    ],
    "Humanoid": [Edge("qpos", 2, 1.0, 0.8, 1.2), Edge("qpos", 2, 2.0, 1.9, 2.1)],
    "InvertedDoublePendulum": [Edge("site", 1, 1.0, 1.0, 0.2)],
    "InvertedPendulum": [Edge("qpos", 1, -0.2, -0.25, -0.15), Edge("qpos", 1, 0.2, 0.15, 0.25)],
    "Walker2d": [
        Edge("qpos", 1, 0.8, 0.75, 0.85, FOLDED_WALKER),
        Edge("qpos", 1, 2.0, 1.95, 2.05),
        Edge("qpos", 2, -1.0, -1.05, -0.95, {1: 1.5}),
        Edge("qpos", 2, 1.0, 0.95, 1.05, {1: 1.5}),
    ],
}


def begin(env, edge, value):
    mujoco.mj_resetData(env.model, env.data)
    qpos, qvel = env.init_qpos.copy(), env.init_qvel.copy()
    for number, other in edge.qpos.items():
        qpos[number] = other
    for number, other in edge.qvel.items():
        qvel[number] = other
    (qvel if edge.what == "qvel" else qpos)[edge.index] = value
    env.set_state(qpos, qvel)


def after(env, edge, value):
    begin(env, edge, value)
    env.do_simulation(np.zeros(env.model.nu), env.frame_skip)
    return float(env.data.site_xpos[0][2] if edge.what == "site" else getattr(env.data, edge.what)[edge.index])


def starts_of(env, edge):
    """Side -> the coordinate of a start that ends there, as near as was found; "at" may be missing."""
    low, high = edge.low, edge.high
    if not after(env, edge, low) < edge.end < after(env, edge, high):
        raise SystemExit(f"{edge}: {after(env, edge, low)} to {after(env, edge, high)}")
    while (middle := low + (high - low) / 2) not in (low, high):
        if after(env, edge, middle) < edge.end:
            low = middle
        else:
            high = middle
    found, value = {}, low
    for _ in range(300):
        value = np.nextafter(value, edge.low)
    for _ in range(600):
        result = after(env, edge, value)
        side = "below" if result < edge.end else "above" if result > edge.end else "at"
        if side not in found or abs(result - edge.end) < abs(found[side][1] - edge.end):
            found[side] = (float(value), result)
        value = np.nextafter(value, edge.high)
    return {side: value for side, (value, _) in found.items()}


def starts(name, env):
    """Each start of each end of a task: the end, its side, and what begins there."""
    for edge in EDGES.get(name, []):
        for attempt in range(100):  # Numbers may be too far apart to hit the end; other velocities round otherwise.
            velocity = {} if edge.what == "qvel" else {edge.index: edge.qvel.get(edge.index, 0.0) + attempt * 1e-9}
            tried = edge._replace(qvel=edge.qvel | velocity)
            sides = starts_of(env, tried)
            if set(sides) == {"below", "at", "above"}:
                break
        else:
            raise SystemExit(f"{edge}: only {sides}")
        for side, value in sorted(sides.items()):
            yield edge.end, side, lambda tried=tried, value=value: begin(env, tried, value)
