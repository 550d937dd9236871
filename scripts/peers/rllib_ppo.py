# SPDX-License-Identifier: Apache-2.0
"""PPO of RLlib on Gymnasium's HalfCheetah-v5, with as many environment runners as cores.

own: the settings of RLlib's published HalfCheetah PPO example (two hidden layers of 256, minibatches of 4,096 out of
65,536, lambda 0.95, clip 0.2, KL coefficient 1.0, learning rate 3e-4, 32 epochs), with normalised observations.
"""

import warnings

warnings.filterwarnings("ignore")

import ray
from ray.rllib.algorithms.ppo import PPOConfig
from ray.rllib.connectors.env_to_module import MeanStdFilter
from ray.rllib.core.rl_module.default_model_config import DefaultModelConfig

from progress import Progress, arguments, note

if __name__ == "__main__":
    args = arguments()
    ray.init(num_cpus=args.cores + 1, include_dashboard=False, log_to_driver=False, logging_level="ERROR")
    study = args.recipe == "study"
    batch, minibatch, epochs = (16384, 4096, 5) if study else (65536, 4096, 32)
    hidden = [64, 64] if study else [256, 256]
    note(recipe=args.recipe, batch=batch, minibatch=minibatch, epochs=epochs, hidden=hidden, runners=args.cores)
    config = (
        PPOConfig()
        .environment("HalfCheetah-v5")
        .env_runners(
            num_env_runners=args.cores,
            num_envs_per_env_runner=8,
            env_to_module_connector=None if study else (lambda *unused, **named: MeanStdFilter()),
        )
        .training(
            train_batch_size_per_learner=batch,
            minibatch_size=minibatch,
            num_epochs=epochs,
            lr=3e-4,
            lambda_=0.95,
            clip_param=0.2,
            gamma=0.99,
            kl_coeff=0.2 if study else 1.0,
        )
        .rl_module(model_config=DefaultModelConfig(fcnet_hiddens=hidden, fcnet_activation="tanh"))
        .debugging(seed=args.seed, log_level="ERROR")
    )
    algorithm = config.build_algo()
    progress, env_steps = Progress(args), 0
    while True:
        result = algorithm.train()
        env_steps = result["env_runners"]["num_env_steps_sampled_lifetime"]
        if progress.iteration(env_steps, result["env_runners"].get("episode_return_mean")):
            break
