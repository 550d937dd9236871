# SPDX-License-Identifier: Apache-2.0
"""PPO made of TorchRL's parts on Gymnasium's HalfCheetah-v5.

own: the settings of TorchRL's published MuJoCo PPO example (2,048 frames a batch of one environment, 10 epochs,
minibatches of 64, learning rate 3e-4 falling to 0 within a million frames, clip 0.2, normalised observations).
"""

import warnings

warnings.filterwarnings("ignore")

import torch
from tensordict.nn import AddStateIndependentNormalScale, TensorDictModule
from torchrl.collectors import Collector
from torchrl.data import LazyTensorStorage, TensorDictReplayBuffer
from torchrl.data.replay_buffers.samplers import SamplerWithoutReplacement
from torchrl.envs import ClipTransform, DoubleToFloat, GymEnv, ParallelEnv, RewardSum, StepCounter, TransformedEnv, VecNorm
from torchrl.modules import MLP, ProbabilisticActor, TanhNormal, ValueOperator
from torchrl.objectives import ClipPPOLoss
from torchrl.objectives.value import GAE

from progress import Progress, arguments, note

if __name__ == "__main__":
    args = arguments()
    torch.manual_seed(args.seed)
    torch.set_num_threads(args.cores)
    study = args.recipe == "study"
    batch, minibatch, epochs = (16384, 4096, 5) if study else (2048, 64, 10)
    envs = 8 * args.cores if study else 1  # Most of a step's cost is per batch of environments.
    base = ParallelEnv(envs, lambda: GymEnv("HalfCheetah-v5")) if study else GymEnv("HalfCheetah-v5")
    note(recipe=args.recipe, envs=envs, batch=batch, minibatch=minibatch, epochs=epochs)
    env = TransformedEnv(base)
    env.append_transform(DoubleToFloat(in_keys=["observation"]))
    env.append_transform(VecNorm(in_keys=["observation"], decay=0.99999, eps=1e-2))
    env.append_transform(ClipTransform(in_keys=["observation"], low=-10, high=10))
    env.append_transform(RewardSum())
    env.append_transform(StepCounter())
    sizes = dict(num_cells=[64, 64], activation_class=torch.nn.Tanh)
    inputs, outputs = env.observation_spec["observation"].shape[-1], env.action_spec.shape[-1]
    means = torch.nn.Sequential(
        MLP(in_features=inputs, out_features=outputs, **sizes), AddStateIndependentNormalScale(outputs)
    )
    actor = ProbabilisticActor(
        TensorDictModule(means, in_keys=["observation"], out_keys=["loc", "scale"]),
        in_keys=["loc", "scale"],
        distribution_class=TanhNormal,
        return_log_prob=True,
    )
    critic = ValueOperator(MLP(in_features=inputs, out_features=1, **sizes), in_keys=["observation"])
    loss_module = ClipPPOLoss(actor, critic, clip_epsilon=0.2, entropy_coeff=0.0, normalize_advantage=True)
    advantage = GAE(gamma=0.99, lmbda=0.95, value_network=critic, average_gae=False)
    optimizer = torch.optim.Adam(loss_module.parameters(), lr=3e-4, eps=1e-5)
    collector = Collector(env, actor, frames_per_batch=batch, total_frames=-1)
    buffer = TensorDictReplayBuffer(
        storage=LazyTensorStorage(batch), sampler=SamplerWithoutReplacement(), batch_size=minibatch
    )
    progress, env_steps = Progress(args), 0
    for data in collector:
        env_steps += data.numel()
        done = data["next", "done"]
        for value in data["next", "episode_reward"][done]:
            progress.episode(value)
        for _ in range(epochs):
            with torch.no_grad():
                advantage(data)
            buffer.extend(data.reshape(-1))
            for _ in range(batch // minibatch):
                losses = loss_module(buffer.sample())
                total = losses["loss_objective"] + losses["loss_critic"]
                optimizer.zero_grad()
                total.backward()
                torch.nn.utils.clip_grad_norm_(loss_module.parameters(), 0.5)
                optimizer.step()
        if not study:
            optimizer.param_groups[0]["lr"] = 3e-4 * max(0.0, 1 - env_steps / 1e6)
        if progress.iteration(env_steps):
            break
    collector.shutdown()
