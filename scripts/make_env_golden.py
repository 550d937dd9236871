#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes tests/env/golden/*.json: what Gymnasium's environments do, for ours to be compared with.

Run in the repository root, with Gymnasium and the MuJoCo release whose physics its published results have:

    scripts/fetch_python.sh gymnasium                               # Gymnasium 1.2.1 and MuJoCo 2.3.7, through pip
    .deps/gymnasium/bin/python scripts/make_env_golden.py

    # Others than the tests have, for a check by hand, and the check:
    .deps/gymnasium/bin/python scripts/make_env_golden.py --out /tmp/fresh --seed 1000
    SKEIN_GOLDEN=/tmp/fresh build/release/tests/env_tests --gtest_filter='*MujocoGolden*'

It writes specs.json (limits of steps, reward thresholds, bounds of actions, names of `info`), classic.json (trajectories
of the classic environments), and of each MuJoCo task mujoco-VERSION/TASK_model.json
(the numbers of Gymnasium's compiled model) and mujoco-VERSION/TASK.json. That has trajectories of 1,000 steps: from
ordinary starts, from poses thrown into the air or onto the ground, with actions beyond their bounds, and with every argument
changed, all played on after they have terminated; from a reset without noise; shorter ones with sets of uncommon arguments
(golden_arguments.py); and single steps that lead to, and just to both sides of, each end of what is healthy
(golden_edges.py). Of the observations, and of what else `info` has, it has a digest of all, and some in full; of the rewards
every one or every fifth, and the sum; of their terms every fiftieth, and the sums; of the start what a reset there has as `info`.
The same versions write the same bytes. Each release of MuJoCo rounds differently: another one installed, e.g.
'mujoco==3.17.0' in an environment of its own, only adds its folder, with 200 steps of each.
"""

import argparse
import json
import math
import pathlib
import re
import sys

import gymnasium
import mujoco
import numpy as np

sys.dont_write_bytecode = True
import golden_arguments  # noqa: E402  Beside this script.
import golden_edges  # noqa: E402


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


def write(out, name, line_break, content):
    """Compact JSON with a new line after each comma in `line_break`: one trajectory step or model field a line."""
    versions = {"gymnasium": gymnasium.__version__, "mujoco": mujoco.__version__}
    text = json.dumps({"made_with": versions, **content}, separators=(",", ":"))
    (out / name).write_text(text.replace(line_break, line_break.replace(",", ",\n")) + "\n")


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


def truncated_after(env):
    """The step of the first episode that says so, played on if the task terminates before."""
    env.reset(seed=0)
    for step in range(1, 2000):
        if env.step(env.action_space.sample() * 0)[3]:
            return step
    raise SystemExit(f"{env.spec.id} is never truncated")


def info_of(env):
    env.reset(seed=0)
    return sorted(env.step(env.action_space.sample())[4])


def specs():
    gymnasium.logger.min_level = gymnasium.logger.ERROR  # CartPole warns of steps after the end.
    rows = []
    for env_id in ["CartPole-v1", "Pendulum-v1", "MountainCarContinuous-v0", *(f"{name}-v5" for name in SUITE)]:
        env = gymnasium.make(env_id)
        row = {"id": env_id, "max_episode_steps": env.spec.max_episode_steps, "truncated_after": truncated_after(env)}
        row |= {"reward_threshold": env.spec.reward_threshold, "info": info_of(env)}
        if isinstance(env.action_space, gymnasium.spaces.Discrete):
            row["choices"] = int(env.action_space.n)
        else:
            row |= {"action_low": float32s(env.action_space.low), "action_high": float32s(env.action_space.high)}
        rows.append(row)
    return rows


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
# name: steps, largest start velocity, height of a throw (None: not thrown), actions to their bounds, whether arguments are
# changed
KINDS = {
    "upright": (1000, 0.0, None, 1.0, False),
    "thrown": (1000, 5.0, 1.0, 1.0, False),
    "beyond the bounds": (1000, 1.0, None, 2.5, False),
    "fallen": (1000, 2.0, -0.5, 1.0, False),
    "other arguments": (1000, 2.0, None, 1.5, True),
}
REST_STEPS = 100
REWARD_EVERY = {"upright": 1}
OTHER_REWARDS_EVERY = 5
DIGEST_EVERY = 50
TERMS_EVERY = 50
OBS_EVERY = 500
# Of trajectories with uncommon arguments.
FEW_STEPS = 50


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


class Digest:
    """FNV-1a over the 32-bit words of all numbers so far, as float32; -0 counts as 0."""

    def __init__(self):
        self.value = 0xCBF29CE484222325

    def add(self, obs):
        for word in (np.asarray(obs, dtype=np.float32) + np.float32(0)).view(np.uint32).tolist():
            self.value = ((self.value ^ word) * 0x100000001B3) % 2**64

    def text(self):
        return f"{self.value:016x}"


def start_of(env, random, velocity, height):
    """A start as Gymnasium's own, or with another pose, in the air or towards the ground."""
    env.reset(seed=int(random.integers(1 << 30)))
    qpos, qvel = env.data.qpos.copy(), env.data.qvel.copy()
    mujoco.mj_resetData(env.model, env.data)
    if height is not None:
        qpos += random.uniform(-0.5, 0.5, env.model.nq)
        if env.model.jnt_type[0] == mujoco.mjtJoint.mjJNT_FREE:
            qpos[2] += height
            if height < 0:  # Turned anyhow, on the ground.
                qpos[2] = 0.3
                qpos[3:7] = random.normal(size=4)
            qpos[3:7] /= np.linalg.norm(qpos[3:7])
        elif height < 0 and env.model.jnt_type[1] == mujoco.mjtJoint.mjJNT_SLIDE:
            qpos[1] += height  # z of a planar body.
            qpos[2] += random.uniform(-3, 3)
    qvel += random.uniform(-velocity, velocity, env.model.nv)
    env.set_state(qpos, qvel)


def state_of(env, arrays, zeroed=()):
    """What Skein saves, but for the metrics."""
    data = env.data
    state = [data.time, *data.qpos, *data.qvel, *data.qacc_warmstart]
    for name in arrays:
        state += list(getattr(data, name).ravel() * (name not in zeroed))
    return numbers(state)


def is_term(name):
    return name.startswith("reward_") or name.endswith("_penalty") or name == "x_velocity"


def numbered(info):
    """Without the terms of the reward; arrays as name_0, name_1, ..."""
    row = {}
    for name, value in info.items():
        if not is_term(name):
            flat = np.asarray(value, dtype=np.float64)
            row |= {f"{name}_{i}": float(x) for i, x in enumerate(flat)} if flat.ndim else {name: float(flat)}
    return row


def as_json(arguments):
    """JSON has no infinity: "inf" and "-inf" stand for it."""
    end = lambda x: str(x) if math.isinf(x) else x
    return {name: [end(x) for x in value] if isinstance(value, list) else value for name, value in arguments.items()}


def play(env, arrays, kind, arguments, seed, bound, steps):
    """From where `env` is, after a reset or set_state."""
    data, actions, digest, info_digest = env.data, Actions(seed, bound), Digest(), Digest()
    every = REWARD_EVERY.get(kind, OTHER_REWARDS_EVERY)
    start = state_of(env, arrays)
    start_info = numbered(env._get_reset_info())
    digest.add(env._get_obs())
    reward_sum = 0.0
    rewards, ends, digests, info_digests, observations, infos, terms, sums = [], [], [digest.text()], [], {}, {}, {}, {}
    for step in range(steps):
        obs, reward, terminated, _, info = env.step(actions.next(env.model.nu))
        digest.add(obs)
        row = numbered(info)
        info_digest.add([row[name] for name in sorted(row)])
        reward_sum += float(reward)
        if step % every == every - 1:
            rewards.append(round(float(reward), 7))
        if bool(terminated) != (len(ends) % 2 == 1):
            ends.append(step)  # It changes from not terminated to terminated here, or back.
        if step % DIGEST_EVERY == DIGEST_EVERY - 1:
            digests.append(digest.text())
            info_digests.append(info_digest.text())
        if step % OBS_EVERY == OBS_EVERY - 1 or (steps < OBS_EVERY and step == steps - 1):
            observations[str(step)] = float32s(obs)
            infos[str(step)] = row
        for name, value in info.items():
            if is_term(name):
                sums[name] = sums.get(name, 0.0) + float(value)
                if step % TERMS_EVERY == 0:
                    terms.setdefault(name, []).append(float(f"{float(value):.9g}"))
    if any(data.warning[i].number for i in range(len(data.warning))):
        raise SystemExit(f"{kind}: the simulation came apart; take another seed")
    return {
        "kind": kind,
        "arguments": as_json(arguments),
        "seed": seed,
        "action_bound": bound,
        "steps": steps,
        "start": start,
        "start_info": start_info,
        "reward_every": every,
        "rewards": rewards,
        "reward_sum": reward_sum,
        "terminated_changes": ends,
        "obs_digest_every": DIGEST_EVERY,
        "obs_digests": digests,
        "info_digests": info_digests,
        "obs": observations,
        "info": infos,
        "terms_every": TERMS_EVERY,
        "terms": terms,
        "sums": sums,
        "final": numbers([*data.qpos, *data.qvel]),
    }


def suite_trajectory(name, arrays, kind, seed, most_steps):
    steps, velocity, height, scale, other_arguments = KINDS[kind]
    arguments = golden_arguments.ARGUMENTS[name] if other_arguments else {}
    env = gymnasium.make(f"{name}-v5", **arguments).unwrapped
    start_of(env, np.random.default_rng(seed), velocity, height)
    return play(env, arrays, kind, arguments, seed, float(env.action_space.high[0]) * scale, min(steps, most_steps))


def uncommon(name, arrays, arguments, seed):
    """A few steps, alternately from an ordinary start and thrown, with actions up to twice their bounds."""
    env = gymnasium.make(f"{name}-v5", **arguments).unwrapped
    start_of(env, np.random.default_rng(seed), 3.0, [None, 0.3][seed % 2])
    bound = float(env.action_space.high[0]) * (1.0 + seed % 3 / 2)
    return play(env, arrays, "uncommon arguments", arguments, seed, bound, FEW_STEPS)


def at_rest(name, arrays, seed):
    """From a reset without noise: the state and the observation of a reset itself."""
    arguments = {"reset_noise_scale": 0.0}
    env = gymnasium.make(f"{name}-v5", **arguments).unwrapped
    env.reset(seed=0)
    return play(env, arrays, "rest", arguments, seed, float(env.action_space.high[0]), REST_STEPS)


def edges(name, arrays):
    """Single steps without an action that end at, and to both sides of, each end of what is healthy."""
    rows = []
    env = gymnasium.make(f"{name}-v5").unwrapped
    env.reset(seed=0)
    for edge, side, begin in golden_edges.starts(name, env):
        begin()
        # What a step computes anew before anything reads it.
        start = state_of(env, arrays, {"cinert", "cvel", "cfrc_ext", "qfrc_actuator", "qfrc_constraint"})
        digest = Digest()
        obs, reward, terminated, _, _ = env.step(np.zeros(env.model.nu, dtype=np.float32))
        digest.add(obs)
        rows.append({"edge": edge, "side": side, "start": start, "reward": float(reward)}
                    | {"terminated": bool(terminated), "obs_digest": digest.text()})
    return rows


def suite(out, seed, most_steps):
    folder = f"mujoco-{mujoco.__version__}"
    (out / folder).mkdir(parents=True, exist_ok=True)
    for number, (name, arrays) in enumerate(SUITE.items()):
        env = gymnasium.make(f"{name}-v5").unwrapped
        write(out, f"{folder}/{snake_case(name)}_model.json", '],"', model_numbers(env.model))
        trajectories = [
            suite_trajectory(name, arrays, kind, seed + 100 * number + i, most_steps) for i, kind in enumerate(KINDS)
        ]
        if name not in ("Pusher", "Reacher"):  # These have no reset_noise_scale.
            trajectories.append(at_rest(name, arrays, seed + 100 * number + len(KINDS)))
        for i, arguments in enumerate(golden_arguments.UNCOMMON[name]):
            trajectories.append(uncommon(name, arrays, arguments, seed + 100 * number + 50 + i))
        content = {"trajectories": trajectories, "edges": edges(name, arrays)}
        write(out, f"{folder}/{snake_case(name)}.json", '],"', content)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("tests/env/golden"))
    parser.add_argument("--seed", type=int, default=0, help="of the MuJoCo trajectories")
    parser.add_argument("--most-steps", type=int, default=None,
                        help="of a trajectory; default: all with MuJoCo 2, else 200")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    if mujoco.__version__.startswith("2."):
        write(options.out, "specs.json", "},{", {"specs": specs()})
        write(options.out, "classic.json", "},{", classic())
    most_steps = options.most_steps or (1000 if mujoco.__version__.startswith("2.") else 200)
    suite(options.out, options.seed, most_steps)


main()
