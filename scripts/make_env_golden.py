#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes tests/env/golden/*.json: what Gymnasium's environments do, for ours to be compared with.

Run in the repository root, with Gymnasium and the MuJoCo release whose physics its published results have:

    python3 -m venv /tmp/golden
    /tmp/golden/bin/pip install 'gymnasium==1.2.*' 'mujoco==2.3.7' imageio packaging
    /tmp/golden/bin/python scripts/make_env_golden.py

It writes classic.json (trajectories of the classic environments), and of each MuJoCo task mujoco-VERSION/TASK_model.json
(the numbers of Gymnasium's compiled model) and mujoco-VERSION/TASK.json: trajectories from ordinary starts, from poses thrown into the
air, and with actions beyond their bounds, all played on after they have terminated. The same versions write the same
bytes. Each release of MuJoCo rounds differently: another one installed, e.g. 'mujoco==3.17.0', only adds its folder.
"""

import json
import pathlib
import re

import gymnasium
import mujoco
import numpy as np

OUT = pathlib.Path("tests/env/golden")

MODEL_FIELDS = {
    "size": "nq nv nu na nbody njnt ngeom ntendon neq npair nexclude nsensor nmocap",
    "opt": "timestep gravity integrator cone jacobian solver iterations tolerance noslip_iterations impratio wind "
    "density viscosity disableflags enableflags",
    "body": "parentid pos quat ipos iquat mass inertia subtreemass invweight0 jntnum geomnum",
    "jnt": "type bodyid axis pos stiffness range limited solref solimp margin",
    "dof": "armature damping frictionloss solref solimp invweight0",
    "geom": "type bodyid size pos quat contype conaffinity condim friction solref solimp solmix priority margin gap",
    "actuator": "trntype trnid gear ctrllimited ctrlrange forcelimited dyntype gaintype gainprm biastype biasprm",
    "": "qpos0 qpos_spring",
}


def numbers(value):
    """Any array or scalar as a flat list; whole numbers without a point."""
    flat = np.asarray(value, dtype=np.float64).ravel()
    return [int(x) if x == int(x) else float(x) for x in flat]


def float32s(value):
    """A float32 array as the shortest decimals that read back as the same float32."""
    return [float(str(x)) for x in np.asarray(value, dtype=np.float32).ravel()]


def write(name, line_break, content):
    """Compact JSON with a new line after each comma in `line_break`: one trajectory step or model field a line."""
    versions = {"gymnasium": gymnasium.__version__, "mujoco": mujoco.__version__}
    text = json.dumps({"made_with": versions, **content}, separators=(",", ":"))
    (OUT / name).write_text(text.replace(line_break, line_break.replace(",", ",\n")) + "\n")


def trajectory(env, start, policy, steps):
    """Steps `env` from state `start`; `policy` maps the observation to an action."""
    env.reset(seed=0)
    env.state = np.array(start)
    obs = np.array(start, dtype=np.float32)
    rows = []
    for _ in range(steps):
        action = policy(obs)
        obs, reward, terminated, _, _ = env.step(action)
        rows.append(
            {"action": float32s(action), "obs": float32s(obs), "reward": float(reward), "terminated": bool(terminated)}
        )
        if terminated:
            break
    return {"start": numbers(start), "steps": rows}


def classic():
    random = np.random.default_rng(1)

    def uniform(bound):
        return lambda obs: np.array([random.uniform(-bound, bound)], dtype=np.float32)

    cartpole = gymnasium.make("CartPole-v1").unwrapped
    random_push = lambda obs: int(random.integers(2))
    lean = lambda obs: int(obs[2] + 0.5 * obs[3] > 0)
    pendulum = gymnasium.make("Pendulum-v1").unwrapped
    car = gymnasium.make("MountainCarContinuous-v0").unwrapped
    rock = lambda obs: np.array([1.0 if obs[1] >= 0 else -1.0], dtype=np.float32)
    weak_left = lambda obs: np.array([-0.7], dtype=np.float32)
    single = lambda *values: np.array(values, dtype=np.float32)  # What the car's state is from its first step on.
    return {
        "CartPole-v1": [
            trajectory(cartpole, [0.01, -0.02, 0.03, 0.04], random_push, 100),
            trajectory(cartpole, [-0.05, 0.05, -0.01, 0.02], lean, 120),
            trajectory(cartpole, [2.3, 1.5, 0.0, 0.0], lambda obs: 1, 100),
            trajectory(cartpole, [-2.3, -1.5, 0.0, 0.0], lambda obs: 0, 100),
        ],
        "Pendulum-v1": [
            trajectory(pendulum, [3.0, -0.5], uniform(2), 100),
            trajectory(
                pendulum, [-3.1, 1.0], lambda obs: np.array([2.0 if obs[-1] > 0 else -2.0], dtype=np.float32), 100
            ),
            trajectory(pendulum, [40.0, 7.9], uniform(2), 50),
        ],
        "MountainCarContinuous-v0": [
            trajectory(car, single(-0.5, 0), uniform(1), 100),
            trajectory(car, single(-0.6, 0), rock, 200),
            trajectory(car, single(-1.0, -0.06), weak_left, 40),
        ],
    }


def model_numbers(model):
    content = {}
    for group, names in MODEL_FIELDS.items():
        for name in names.split():
            field = name if group in ("size", "") else f"{group}_{name}"
            content[field] = numbers(getattr(model.opt, name) if group == "opt" else getattr(model, field))
    return content


# Which arrays of mjData, besides qpos and qvel, a task reads, in the order of Facts::reads (env/mujoco/tasks).
HUMANOID = ["cinert", "cvel", "qfrc_actuator", "cfrc_ext"]
SUITE = {
    "Ant": ["xpos", "cfrc_ext"],
    "HalfCheetah": [],
    "Hopper": [],
    "Humanoid": ["xipos", *HUMANOID],
    "HumanoidStandup": HUMANOID,
    "InvertedDoublePendulum": ["qfrc_constraint", "site_xpos"],
    "InvertedPendulum": [],
    "Pusher": ["xpos"],
    "Reacher": ["xpos"],
    "Swimmer": [],
    "Walker2d": [],
}
# name: steps, largest start velocity, whether the start is turned and lifted at random, actions to their bounds
KINDS = {
    "upright": (1000, 0.0, False, 1.0),
    "thrown": (300, 5.0, True, 1.0),
    "beyond the bounds": (200, 1.0, False, 2.5),
}
OBS_EVERY = 100


def snake_case(name):
    return re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower()


class Actions:
    """Whole numbers only, so that C++ makes the same ones: a linear congruential generator, its upper 16 bits."""

    def __init__(self, seed, bound):
        self.state, self.bound = seed, np.float32(bound)

    def next(self, size):
        values = []
        for _ in range(size):
            self.state = (self.state * 6364136223846793005 + 1442695040888963407) % 2**64
            values.append(np.float32((self.state >> 48) / 32768 - 1) * self.bound)
        return np.array(values, dtype=np.float32)


def start_of(env, random, velocity, thrown):
    """A start as Gymnasium's own, or one in the air with another pose."""
    env.reset(seed=int(random.integers(1 << 30)))
    qpos, qvel = env.data.qpos.copy(), env.data.qvel.copy()
    mujoco.mj_resetData(env.model, env.data)
    if thrown:
        qpos += random.uniform(-0.5, 0.5, env.model.nq)
        free = env.model.jnt_type[0] == mujoco.mjtJoint.mjJNT_FREE
        if free:
            qpos[2] += 1
            qpos[3:7] /= np.linalg.norm(qpos[3:7])
    qvel += random.uniform(-velocity, velocity, env.model.nv)
    env.set_state(qpos, qvel)


def suite_trajectory(env, arrays, kind, seed):
    steps, velocity, thrown, scale = KINDS[kind]
    random = np.random.default_rng(seed)
    start_of(env, random, velocity, thrown)
    data = env.data
    start = [data.time, *data.qpos, *data.qvel, *data.qacc_warmstart]
    for name in arrays:
        start += list(getattr(data, name).ravel())
    bound = float(env.action_space.high[0]) * scale
    actions = Actions(seed, bound)
    rewards, ends, observations, terms = [], [], {}, {}
    for step in range(steps):
        obs, reward, terminated, _, info = env.step(actions.next(env.model.nu))
        rewards.append(float(reward))
        if bool(terminated) != (len(ends) % 2 == 1):
            ends.append(step)  # It changes from not terminated to terminated here, or back.
        if step % OBS_EVERY == OBS_EVERY - 1:
            observations[str(step)] = float32s(obs)
        for name, value in info.items():
            if name.startswith("reward_") or name.endswith("_penalty"):
                terms[name] = terms.get(name, 0.0) + float(value)
    return {
        "kind": kind,
        "seed": seed,
        "action_bound": bound,
        "start": numbers(start),
        "rewards": [round(reward, 7) for reward in rewards],
        "terminated_changes": ends,
        "obs": observations,
        "terms": terms,
        "final": numbers([*data.qpos, *data.qvel]),
    }


def suite():
    folder = f"mujoco-{mujoco.__version__}"
    (OUT / folder).mkdir(parents=True, exist_ok=True)
    for number, (name, arrays) in enumerate(SUITE.items()):
        env = gymnasium.make(f"{name}-v5").unwrapped
        write(f"{folder}/{snake_case(name)}_model.json", '],"', model_numbers(env.model))
        trajectories = [suite_trajectory(env, arrays, kind, 100 * number + i) for i, kind in enumerate(KINDS)]
        write(f"{folder}/{snake_case(name)}.json", '],"', {"trajectories": trajectories})


def main():
    OUT.mkdir(parents=True, exist_ok=True)
    if mujoco.__version__.startswith("2."):
        write("classic.json", "},{", classic())
    suite()


main()
