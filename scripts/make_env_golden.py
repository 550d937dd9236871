#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes tests/env/golden/*.json: what Gymnasium's environments do, for ours to be compared with.

Run in the repository root, with Gymnasium and the MuJoCo release whose physics its published results have:

    python3 -m venv /tmp/golden
    /tmp/golden/bin/pip install 'gymnasium==1.2.*' 'mujoco==2.3.7' imageio packaging
    /tmp/golden/bin/python scripts/make_env_golden.py

It writes classic.json (trajectories of the classic environments) and, of each MuJoCo task, TASK_model.json (the numbers
of Gymnasium's compiled model) and TASK.json (a trajectory, or a list of them). The same versions write the same bytes.
With 'mujoco==3.17.0' instead, whose physics round differently, it writes only half_cheetah_mujoco3.json: the same start
and actions.
"""

import json
import pathlib

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


def half_cheetah(env):
    random = np.random.default_rng(2)
    env.reset(seed=0)
    mujoco.mj_resetData(env.model, env.data)
    env.set_state(env.init_qpos + random.uniform(-0.1, 0.1, 9), env.init_qvel + 0.1 * random.standard_normal(9))
    start = [env.data.time, *env.data.qpos, *env.data.qvel, *env.data.qacc_warmstart]
    rows = []
    for _ in range(200):
        action = random.uniform(-1, 1, 6).astype(np.float32)
        obs, reward, terminated, _, _ = env.step(action)
        assert not terminated
        rows.append({"action": float32s(action), "obs": float32s(obs), "reward": float(reward)})
    return {"start": numbers(start), "steps": rows}


def walker2d(env):
    """Until it falls, over and over. Its saved state ends with the sums of three reward terms."""
    random = np.random.default_rng(3)
    trajectories = []
    for _ in range(6):
        env.reset(seed=0)
        mujoco.mj_resetData(env.model, env.data)
        noise = random.uniform(-5e-3, 5e-3, 18)
        env.set_state(env.init_qpos + noise[:9], env.init_qvel + noise[9:])
        start = [env.data.time, *env.data.qpos, *env.data.qvel, *env.data.qacc_warmstart, 0, 0, 0]
        rows = []
        terminated = False
        while not terminated:
            action = random.uniform(-1, 1, 6).astype(np.float32)
            obs, reward, terminated, _, _ = env.step(action)
            rows.append(
                {"action": float32s(action), "obs": float32s(obs), "reward": float(reward), "terminated": bool(terminated)}
            )
        trajectories.append({"start": numbers(start), "steps": rows})
    return {"trajectories": trajectories}


def main():
    OUT.mkdir(parents=True, exist_ok=True)
    cheetah = gymnasium.make("HalfCheetah-v5").unwrapped
    if not mujoco.__version__.startswith("2."):
        write("half_cheetah_mujoco3.json", "},{", half_cheetah(cheetah))
        return
    write("classic.json", "},{", classic())
    write("half_cheetah_model.json", '],"', model_numbers(cheetah.model))
    write("half_cheetah.json", "},{", half_cheetah(cheetah))
    walker = gymnasium.make("Walker2d-v5").unwrapped
    write("walker2d_model.json", '],"', model_numbers(walker.model))
    write("walker2d.json", "},{", walker2d(walker))


main()
