#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes tests/env/golden/mujoco-VERSION/quadruped.json: trajectories of QuadrupedStand-v0 whose rewards and
observations are computed here, step by step, from the formulas of docs/environments.md, with MuJoCo's Python package.

Run in the repository root, with a Python that has mujoco (2.3.7 for the committed file) and NumPy:

    .deps/gymnasium/bin/python scripts/make_quadruped_golden.py
"""

import json
import pathlib

import mujoco
import numpy as np

MODEL = "env/mujoco/tasks/quadruped_stand.xml"
DEFAULTS = {
    "height_range": [0.42, 0.52],
    "upright_range": [0.80, 0.98],
    "knee_range": [0.5, 0.7],
    "speed_limit": 0.5,
    "turn_limit": 1.0,
    "stand_seconds": 4.0,
    "fall_height": 0.22,
    "fall_upright": 0.2,
    "healthy_reward": 0.6,
    "posture_weight": 2.5,
    "streak_weight": 1.0,
    "knee_weight": 2.0,
    "tilt_cost_weight": 0.5,
    "turn_cost_weight": 0.05,
    "speed_cost_weight": 0.5,
    "change_cost_weight": 0.1,
    "ctrl_cost_weight": 0.05,
}
OTHER = {
    "height_range": [0.45, 0.55],
    "upright_range": [0.9, 0.995],
    "knee_range": [0.4, 0.8],
    "speed_limit": 0.3,
    "turn_limit": 0.7,
    "stand_seconds": 0.6,
    "fall_height": 0.25,
    "fall_upright": 0.5,
    "healthy_reward": 0.8,
    "posture_weight": 3.0,
    "streak_weight": 0.7,
    "knee_weight": 2.5,
    "tilt_cost_weight": 0.4,
    "turn_cost_weight": 0.03,
    "speed_cost_weight": 0.2,
    "change_cost_weight": 0.25,
    "ctrl_cost_weight": 0.15,
}
FRAME_SKIP = 3


def parabola(x, low, high):
    if x <= low or x >= high:
        return 0.0
    middle, half = (low + high) / 2, (high - low) / 2
    return 1.0 - ((x - middle) / half) ** 2


def rise(x, low, high):
    if x <= low:
        return 0.0
    if x >= high:
        return 1.0
    return 1.0 - ((high - x) / (high - low)) ** 2


def judge(settings, data, action, last_action, streak, in_bands):
    """The terms of a step's reward, whether it ends the episode, and the steps in the pose without a break; the same with
    tilt and knees within their whole bands."""
    matrix = np.zeros(9)
    mujoco.mju_quat2Mat(matrix, data.qpos[3:7])
    upright = matrix[8]  # z of the torso's own z axis.
    height = data.qpos[2]
    speed, turn = np.linalg.norm(data.qvel[0:3]), np.linalg.norm(data.qvel[3:6])
    low, high = settings["height_range"]
    standing = low <= height <= high and upright >= settings["upright_range"][0]
    standing = standing and speed <= settings["speed_limit"] and turn <= settings["turn_limit"]
    streak = streak + 1 if standing else 0
    fallen = height < settings["fall_height"] or upright < settings["fall_upright"]
    bends = [bend / 2.0 for bend in data.qpos[[8, 10, 12, 14]]]
    within = standing and upright <= settings["upright_range"][1]
    within = within and all(settings["knee_range"][0] <= bend <= settings["knee_range"][1] for bend in bends)
    in_bands = in_bands + 1 if within else 0
    knees = [parabola(bend, *settings["knee_range"]) for bend in bends]
    posture = [parabola(height, low, high), rise(upright, *settings["upright_range"])]
    terms = {
        "reward_alive": 0.0 if fallen else settings["healthy_reward"],
        "reward_posture": settings["posture_weight"] * sum(posture) / 2,
        "reward_streak": settings["streak_weight"] * min(1.0, streak * FRAME_SKIP * 0.002),
        "reward_knee": settings["knee_weight"] * sum(knees) / 4,
        "reward_tilt": -settings["tilt_cost_weight"] * (1 - upright),
        "reward_turn": -settings["turn_cost_weight"] * turn**2,
        "reward_speed": -settings["speed_cost_weight"] * speed**2,
        "reward_change": -settings["change_cost_weight"]
        * sum((float(a) - float(b)) ** 2 for a, b in zip(action, last_action))
        / 8,
        "reward_ctrl": -settings["ctrl_cost_weight"] * sum(float(a) ** 2 for a in action) / 8,
    }
    return terms, bool(fallen), streak, in_bands


def float32s(values):
    return [float(str(x)) for x in np.asarray(values, dtype=np.float32).ravel()]


def crouch(data, model, random):
    mujoco.mj_resetData(model, data)
    data.qpos[2] = 0.42
    data.qpos[3:7] = [np.cos(-0.04), 0, np.sin(-0.04), 0]
    for leg in range(4):
        data.qpos[7 + 2 * leg] = -0.1 + random.uniform(-0.03, 0.03)
        data.qpos[8 + 2 * leg] = 1.6 + random.uniform(-0.04, 0.04)
    mujoco.mj_forward(model, data)


def trajectory(model, observation, settings, control, steps, seed):
    random = np.random.default_rng(seed)
    data = mujoco.MjData(model)
    crouch(data, model, random)
    start = [data.time, *data.qpos, *data.qvel, *data.qacc_warmstart]
    last_action, streak, in_bands, rows, sums = np.zeros(8), 0, 0, [], {}
    for step in range(steps):
        action = np.clip(control(random, data, step), -1, 1).astype(np.float32)
        data.ctrl[:] = action
        for _ in range(FRAME_SKIP):
            mujoco.mj_step(model, data)
        terms, terminated, streak, in_bands = judge(settings, data, action, last_action, streak, in_bands)
        last_action = action
        stood, stood_in_bands = (
            int(steps * FRAME_SKIP * 0.002 >= settings["stand_seconds"] - 1e-9) for steps in (streak, in_bands)
        )
        for name, value in terms.items():
            sums[name] = sums.get(name, 0.0) + value
        row = {"action": float32s(action), "reward": sum(terms.values()), "terminated": terminated, "stood": stood}
        row["stood_in_bands"] = stood_in_bands
        if step % 10 == 0:
            row["obs"] = float32s(data.qpos if observation == "full" else data.qpos[7:]) + float32s(data.qvel)
        rows.append(row)
    return {
        "arguments": {**settings, "observation": observation},
        "start": [float(x) for x in start],
        "steps": rows,
        "terms": sums,
        "final": [float(x) for x in [*data.qpos, *data.qvel]],
    }


def rise_and_stand(random, data, step):
    """Moves the joints to a standing pose, with noise, and gives in after two seconds."""
    part = min(1.0, step / 50)
    target = part * np.tile([-0.35, 1.25], 4) + (1 - part) * np.tile([-0.1, 1.6], 4)
    stiff = 5.0 if step < 330 else 0.0
    return stiff * (target - data.qpos[7:]) - 0.4 * data.qvel[6:] + random.uniform(-0.1, 0.1, 8)


def collapse(random, data, step):
    """Anything, then the legs of one side fold up."""
    return random.uniform(-2, 2, 8) if step < 60 else np.array([-1, 1, 0, 0, 1, 1, 0, 0.0])


def main():
    model = mujoco.MjModel.from_xml_path(MODEL)
    content = {
        "made_with": {"mujoco": mujoco.__version__},
        "trajectories": [
            trajectory(model, "full", DEFAULTS, rise_and_stand, 300, 1),
            trajectory(model, "joints", OTHER, rise_and_stand, 400, 2),
            trajectory(model, "full", OTHER, collapse, 250, 3),
            trajectory(model, "full", {**OTHER, "upright_range": [0.9, 1.0]}, rise_and_stand, 400, 4),
        ],
    }
    out = pathlib.Path(f"tests/env/golden/mujoco-{mujoco.__version__}/quadruped.json")
    out.write_text(json.dumps(content, separators=(",", ":")).replace("},{", "},\n{") + "\n")


main()
