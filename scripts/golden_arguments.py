# SPDX-License-Identifier: Apache-2.0
"""The arguments with which scripts/make_env_golden.py plays Gymnasium's MuJoCo tasks."""

INF = float("inf")

# Every argument of each task with another value than its default. Gymnasium ignores uph_cost_weight of HumanoidStandup.
RUNNER = {"forward_reward_weight": 0.75, "ctrl_cost_weight": 0.25, "reset_noise_scale": 0.05}
HEALTH = {"healthy_reward": 2.5, "terminate_when_unhealthy": False}
WITH_POSITIONS = {"exclude_current_positions_from_observation": False}
NO_COLUMNS = {f"include_{name}_in_observation": False for name in ("cinert", "cvel", "qfrc_actuator", "cfrc_ext")}
ARGUMENTS = {
    "Ant": RUNNER
    | HEALTH
    | WITH_POSITIONS
    | {"healthy_z_range": [0.3, 0.9], "contact_cost_weight": 0.125, "contact_force_range": [-0.5, 2.0]}
    | {"main_body": 3, "include_cfrc_ext_in_observation": False, "frame_skip": 3},
    "HalfCheetah": RUNNER | WITH_POSITIONS | {"frame_skip": 3},
    "Hopper": RUNNER
    | HEALTH
    | WITH_POSITIONS
    | {"healthy_z_range": [0.6, 1.3], "healthy_angle_range": [-0.5, 0.1], "healthy_state_range": [-5.0, 4.0]}
    | {"frame_skip": 3},
    "Humanoid": RUNNER
    | HEALTH
    | WITH_POSITIONS
    | NO_COLUMNS
    | {"healthy_z_range": [0.5, 1.5], "contact_cost_weight": 1e-6, "contact_cost_range": [0.01, 0.5], "frame_skip": 3},
    "HumanoidStandup": WITH_POSITIONS
    | NO_COLUMNS
    | {"uph_cost_weight": 2.0, "ctrl_cost_weight": 0.25}
    | {"impact_cost_weight": 1e-6, "impact_cost_range": [0.01, 0.5]}
    | {"reset_noise_scale": 0.05, "frame_skip": 3},
    "InvertedDoublePendulum": {"healthy_reward": 2.5, "reset_noise_scale": 0.05, "frame_skip": 3},
    "InvertedPendulum": {"reset_noise_scale": 0.05, "frame_skip": 3},
    "Pusher": {"reward_near_weight": 0.75, "reward_dist_weight": 2.0, "reward_control_weight": 0.25, "frame_skip": 3},
    "Reacher": {"reward_dist_weight": 2.0, "reward_control_weight": 0.25, "frame_skip": 3},
    "Swimmer": RUNNER | WITH_POSITIONS | {"frame_skip": 3},
    "Walker2d": RUNNER
    | HEALTH
    | WITH_POSITIONS
    | {"healthy_z_range": [0.6, 1.3], "healthy_angle_range": [-0.5, 0.5], "frame_skip": 3},
}
# Further sets, each played a few steps: ends of ranges that are infinite, equal, or exclude 0; weights of 0 and below; the
# shortest decisions and long ones; bodies by name and by number; columns left out by ones.
EVERYTHING = [-INF, INF]
UNCOMMON = {
    "Ant": [
        WITH_POSITIONS | {"main_body": "torso", "contact_force_range": EVERYTHING, "healthy_z_range": EVERYTHING},
        {"main_body": 13, "contact_force_range": [0.0, 0.0], "healthy_z_range": [0.5, INF], "frame_skip": 1},
        {"main_body": 0, "contact_force_range": [0.5, 2.0], "terminate_when_unhealthy": False, "healthy_reward": -3.0}
        | {"frame_skip": 10},
        {"main_body": "aux_4", "contact_force_range": [-2.0, -1.0], "include_cfrc_ext_in_observation": False},
        {"forward_reward_weight": -2.0, "ctrl_cost_weight": 0.0, "contact_cost_weight": -1.0, "healthy_reward": 0.0},
    ],
    "HalfCheetah": [
        WITH_POSITIONS | {"frame_skip": 1},
        {"forward_reward_weight": -2.0, "ctrl_cost_weight": 0.0, "frame_skip": 10},
        {"forward_reward_weight": 0.0, "ctrl_cost_weight": -0.5},
    ],
    "Hopper": [
        {"healthy_z_range": EVERYTHING, "healthy_angle_range": EVERYTHING, "healthy_state_range": EVERYTHING},
        {"healthy_state_range": [-5.0, 5.0], "terminate_when_unhealthy": False, "healthy_reward": -1.0, "frame_skip": 1},
        WITH_POSITIONS | {"healthy_z_range": [0.7, 1.5], "forward_reward_weight": -2.0, "frame_skip": 10},
        {"healthy_z_range": [-INF, 1.0], "healthy_angle_range": [-1.0, INF], "ctrl_cost_weight": -1.0},
        {"healthy_angle_range": [0.0, 0.0], "healthy_reward": 0.0, "ctrl_cost_weight": 0.0},
    ],
    "Humanoid": [
        {"contact_cost_range": [0.5, 0.5], "healthy_z_range": [-INF, 1.2], "include_cvel_in_observation": False},
        WITH_POSITIONS | {"contact_cost_range": EVERYTHING, "include_cinert_in_observation": False},
        {"include_qfrc_actuator_in_observation": False, "forward_reward_weight": -1.0, "frame_skip": 1},
        {"include_cfrc_ext_in_observation": False, "contact_cost_weight": 0.0, "healthy_reward": -2.0, "frame_skip": 8},
    ],
    "HumanoidStandup": [
        WITH_POSITIONS | {"impact_cost_range": EVERYTHING, "include_qfrc_actuator_in_observation": False},
        {"impact_cost_range": [3.0, 3.0], "include_cinert_in_observation": False, "frame_skip": 2},
        {"impact_cost_weight": 0.0, "ctrl_cost_weight": -0.5, "include_cvel_in_observation": False, "frame_skip": 1},
        {"impact_cost_range": [0.0, INF], "include_cfrc_ext_in_observation": False, "uph_cost_weight": 7.0},
    ],
    "InvertedDoublePendulum": [
        {"healthy_reward": -2.0, "frame_skip": 1},
        {"healthy_reward": 0.0, "frame_skip": 8},
    ],
    "InvertedPendulum": [{"frame_skip": 1}, {"frame_skip": 10}],
    "Pusher": [
        {"reward_near_weight": 0.0, "frame_skip": 1},
        {"reward_dist_weight": -1.0, "reward_control_weight": 0.0, "frame_skip": 10},
    ],
    "Reacher": [
        {"reward_dist_weight": -1.0, "frame_skip": 5},
        {"reward_dist_weight": 0.0, "reward_control_weight": -2.0, "frame_skip": 1},
    ],
    "Swimmer": [
        WITH_POSITIONS | {"frame_skip": 1},
        {"forward_reward_weight": -2.0, "ctrl_cost_weight": 1.5, "frame_skip": 10},
    ],
    "Walker2d": [
        {"healthy_z_range": EVERYTHING, "healthy_angle_range": [-0.3, INF], "frame_skip": 1},
        WITH_POSITIONS | {"healthy_z_range": [1.0, INF], "healthy_reward": -1.0},
        {"healthy_angle_range": EVERYTHING, "terminate_when_unhealthy": False, "forward_reward_weight": 0.0}
        | {"ctrl_cost_weight": -1.0, "frame_skip": 10},
        {"healthy_z_range": [-INF, 0.9], "healthy_angle_range": [0.0, 0.0], "healthy_reward": 0.0},
    ],
}
