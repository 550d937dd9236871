# SPDX-License-Identifier: Apache-2.0
"""What learning_study.py trains in its suites, and what others reached."""

import typing


FIRST_SEED = 201  # Of a suite, where nothing else is said.


class Task(typing.NamedTuple):
    """What an environment's recipe should reach, in test episodes with deterministic actions."""
    env: str
    threshold: float
    source: str
    figure: str = "return_mean"
    settings: tuple = ()  # Of `skein train`, beside the environment.
    recipe: str = "auto"  # --recipe
    config: str = ""  # --config in place of the environment; then `recipe` only says what the row is of
    first_seed: int = FIRST_SEED  # Neither it nor those that follow had a part in the choice of the configuration.


GYMNASIUM = "Gymnasium's reward_threshold"
ZOO = "https://github.com/DLR-RM/rl-baselines3-zoo/blob/master/benchmark.md"
# The cheapest first.
RECIPES = [
    Task("CartPole-v1", 475, GYMNASIUM),
    Task("StickyCartPole-v0", 475, "that of CartPole-v1"),
    # How long a step sleeps changes nothing that is learned.
    Task("Latency-v0", -5, "our own: a mean squared error of 0.025 a step; the optimum is 0",
         settings=("--set", "env.latency.step_ms=0")),
    Task("MountainCarContinuous-v0", 90, GYMNASIUM),
    Task("Pendulum-v1", -200, f"Gymnasium has none; [RL Baselines3 Zoo]({ZOO}): PPO -172 +- 104"),
    Task("InvertedPendulum-v5", 950, GYMNASIUM),
    Task("InvertedDoublePendulum-v5", 9100, GYMNASIUM),
    Task("RepeatPrevious-v0", 60, "our own: the best is 64, chance is 16"),
    Task("Reacher-v5", -3.75, GYMNASIUM),
    Task("Swimmer-v5", 120, "Spinning Up's PPO, about; Gymnasium's reward_threshold is 360"),
    Task("Hopper-v5", 3128, "Tianshou's PPO; Gymnasium's reward_threshold is 3,800"),
    Task("Walker2d-v5", 3479, f"Gymnasium has none; [RL Baselines3 Zoo]({ZOO}): PPO 3,479 +- 822 on Walker2d-v3"),
    Task("HalfCheetah-v5", 4800, GYMNASIUM),
    Task("Ant-v5", 4079, "Tianshou's PPO, of the 27 columns of version 4; Gymnasium's reward_threshold is 6,000"),
    Task("Pusher-v5", -40, "our own: random actions have -151; Gymnasium's reward_threshold of 0 is out of reach"),
    Task("Humanoid-v5", 1360, "Gymnasium has none; Tianshou's PPO"),
    Task("HumanoidStandup-v5", 64000, "our own: twice what random actions have; Gymnasium has none"),
    Task("QuadrupedStand-v0", 0.9, "our own: share of episodes that end standing, with the last phase's pushes",
         figure="stood"),
    Task("UavCover-v0", 0.9, "our own: share of the free cells that are visited", figure="coverage"),
    Task("UavNavigate-v0", 0.9, "our own: share of UAVs that arrive", figure="success_rate"),
]
# What an environment without a recipe gets.
GENERAL = [task._replace(recipe="general") for task in RECIPES if task.env in ("CartPole-v1", "HalfCheetah-v5")]


def of_memory(env, config, threshold, source, **more):
    """The configuration as it is, and its control without a memory."""
    return [Task(env, threshold, source, recipe="memory", config=config, **more),
            Task(env, threshold, source, recipe="no memory", config=config, settings=("--set", "model.memory=none"),
                 **more)]


CONTRIB = "SB3-contrib's RecurrentPPO, tuned"
MEMORY = [
    *of_memory("RepeatPrevious-v0", "configs/repeat_previous_ppo.yaml", 60, "our own: the best is 64, chance is 16"),
    *of_memory("CartPole-v1", "configs/cartpole_memory_ppo.yaml", 500, f"{CONTRIB}, at 100k steps", first_seed=211),
    *of_memory("Pendulum-v1", "configs/pendulum_memory_ppo.yaml", -200, f"{CONTRIB}: -218 +- 140 at 100k steps"),
    *of_memory("MountainCarContinuous-v0", "configs/mountain_car_continuous_memory_ppo.yaml", 91.5,
               f"{CONTRIB}, at 300k steps"),
    *of_memory("HalfCheetah-v5", "configs/half_cheetah_memory_ppo.yaml", 5871,
               "our own: 0.8 of what the full task's recipe returns", first_seed=221),
    *of_memory("UavNavigate-v0", "configs/uav_navigate_memory_mappo.yaml", 0.9,
               "our own: share of UAVs that arrive", figure="success_rate"),
]


class Reference(typing.NamedTuple):
    """A line of the suite: a MuJoCo task, and the best PPO that was published for it."""
    name: str
    at: int           # Env steps of ours.
    published: dict   # Env steps -> mean test return of theirs; empty: nobody published one.
    source: str
    config: str = ""  # Without folder and ending; empty: the name.
    settings: tuple = ()  # --set of `skein train`.
    first_seed: int = FIRST_SEED  # Neither it nor those that follow had a part in the choice of the configuration.
    seeds: int = 10  # Unless --seeds says how many.


MILLION = 1000000
TIANSHOU = "Tianshou, 10 seeds"
MUJOCO = [
    Reference("inverted_pendulum", 300000, {MILLION: 1000}, TIANSHOU),
    Reference("inverted_double_pendulum", 500000, {MILLION: 9231}, TIANSHOU, first_seed=206),
    Reference("reacher", MILLION, {3 * MILLION: -3.7}, TIANSHOU),
    Reference("swimmer", MILLION, {3 * MILLION: 120}, "Spinning Up, about"),
    Reference("half_cheetah", 3 * MILLION, {MILLION: 5784, 3 * MILLION: 7337}, TIANSHOU),
    Reference("hopper", 3 * MILLION, {MILLION: 2609, 3 * MILLION: 3128}, TIANSHOU, first_seed=221),
    Reference("walker2d", 3 * MILLION, {MILLION: 3589, 3 * MILLION: 4896}, TIANSHOU, first_seed=206),
    Reference("ant", 2 * MILLION, {}, "", first_seed=206),
    Reference("ant_27", 2 * MILLION, {MILLION: 3258, 3 * MILLION: 4079}, TIANSHOU, "ant",
              ("env.mujoco.include_cfrc_ext_in_observation=false",), first_seed=206),
    Reference("pusher", 3 * MILLION, {}, "", "pusher", (f"total_steps={3 * MILLION}",)),
    Reference("humanoid", MILLION * 3 // 2, {MILLION: 787, 3 * MILLION: 1360}, TIANSHOU),
    Reference("humanoid_standup", 3 * MILLION, {}, "", "humanoid_standup", (f"total_steps={3 * MILLION}",)),
    Reference("humanoid_10m", 10 * MILLION, {10 * MILLION: 5440}, "Sample Factory, about", "humanoid",
              (f"total_steps={10 * MILLION}",), seeds=4),  # An hour of a core each.
]


class Race(typing.NamedTuple):
    """A line of the wall-clock suite: how soon a task of MUJOCO has a return, or a configuration that is for a short wait."""
    name: str
    target: float       # Test return.
    rl_games: float     # Seconds of rl_games on an RTX 3090 with EnvPool.
    interval: int = 0   # Env steps between checkpoints; 0: as of other studies.
    first_seed: int = FIRST_SEED


RACES = [
    Race("walker2d_quick", 4000, 45, interval=50000),
    Race("hopper", 3000, 90, first_seed=221),
    Race("ant_27", 4000, 95),
    Race("humanoid", 5000, 100),
]
