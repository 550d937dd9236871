# SPDX-License-Identifier: Apache-2.0
"""PPO of Stable-Baselines3 on Gymnasium's HalfCheetah-v5.

study: 16,384 env steps an iteration of --envs environments, stepped one after the other (--vec dummy) or each in a process of
its own (subproc).
defaults: the same, updated in Stable-Baselines3's own 10 epochs and minibatches of 64.
own: the RL Zoo's tuned settings for HalfCheetah (normalised observations and rewards, one environment).
"""

import torch
from stable_baselines3 import PPO
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.vec_env import DummyVecEnv, SubprocVecEnv, VecNormalize

from progress import Progress, arguments, note


class Report(BaseCallback):
    def __init__(self, progress):
        super().__init__()
        self.progress = progress
        self.stopped = False

    def _on_step(self):
        for info in self.locals["infos"]:
            if "episode" in info:
                self.progress.episode(info["episode"]["r"])
        return not self.stopped

    def _on_rollout_start(self):
        if self.num_timesteps > 0:
            self.stopped = self.progress.iteration(self.num_timesteps)


if __name__ == "__main__":
    args = arguments(vec=["subproc", "dummy"], envs=16, recipes=["study", "defaults", "own"])
    torch.set_num_threads(args.cores)
    if args.recipe != "own":
        kind = SubprocVecEnv if args.vec == "subproc" else DummyVecEnv
        envs = make_vec_env("HalfCheetah-v5", n_envs=args.envs, seed=args.seed, vec_env_cls=kind)
        settings = dict(n_steps=16384 // args.envs, policy_kwargs=dict(net_arch=[64, 64]))
        if args.recipe == "study":
            settings.update(batch_size=4096, n_epochs=5)
    else:
        envs = make_vec_env("HalfCheetah-v5", n_envs=1, seed=args.seed, vec_env_cls=DummyVecEnv)
        envs = VecNormalize(envs, gamma=0.98)
        settings = dict(
            n_steps=512,
            batch_size=64,
            gamma=0.98,
            learning_rate=2.0633e-05,
            ent_coef=0.000401762,
            clip_range=0.1,
            n_epochs=20,
            gae_lambda=0.92,
            max_grad_norm=0.8,
            vf_coef=0.58096,
            policy_kwargs=dict(
                log_std_init=-2,
                ortho_init=False,
                activation_fn=torch.nn.ReLU,
                net_arch=dict(pi=[256, 256], vf=[256, 256]),
            ),
        )
    note(recipe=args.recipe, vec=type(envs).__name__, envs=envs.num_envs, **{k: str(v) for k, v in settings.items()})
    model = PPO("MlpPolicy", envs, seed=args.seed, device="cpu", **settings)
    model.learn(total_timesteps=10**9, callback=Report(Progress(args)))
