# SPDX-License-Identifier: Apache-2.0
"""A plain PyTorch PPO on EnvPool's HalfCheetah-v5, written as the usual single-file implementations are.

own: the settings that CleanRL publishes for its continuous PPO with normalised observations and rewards, on 64
environments in the way that rl_games uses EnvPool: 64 environments, horizon 64, minibatches of 2,048, learning rate by
the KL divergence.
"""

import envpool
import numpy as np
import torch
from torch import nn

from progress import Progress, arguments, note


def layer(inputs, outputs, gain=2**0.5):
    linear = nn.Linear(inputs, outputs)
    nn.init.orthogonal_(linear.weight, gain)
    nn.init.zeros_(linear.bias)
    return linear


def network(inputs, hidden, outputs, gain, activation):
    sizes = [inputs, *hidden]
    layers = [part for a, b in zip(sizes, sizes[1:]) for part in (layer(a, b), activation())]
    return nn.Sequential(*layers, layer(sizes[-1], outputs, gain))


class Moments:
    def __init__(self, shape):
        self.mean, self.variance, self.count = np.zeros(shape), np.ones(shape), 1e-4

    def update(self, rows):
        mean, variance, count = rows.mean(0), rows.var(0), len(rows)
        delta, total = mean - self.mean, self.count + count
        squares = self.variance * self.count + variance * count + delta**2 * self.count * count / total
        self.mean, self.variance, self.count = self.mean + delta * count / total, squares / total, total


def main():
    args = arguments()
    torch.manual_seed(args.seed)
    torch.set_num_threads(args.cores)
    study = args.recipe == "study"
    num_envs, horizon = (256, 64) if study else (64, 64)
    epochs, minibatch = (5, 4096) if study else (5, 2048)
    hidden, activation = ((64, 64), nn.Tanh) if study else ((128, 64, 32), nn.ELU)
    gamma, lam, clip, rate, kl_target = 0.99, 0.95, 0.2, 3e-4, None if study else 0.008
    note(recipe=args.recipe, envs=num_envs, horizon=horizon, epochs=epochs, minibatch=minibatch, threads=args.cores)
    envs = envpool.make("HalfCheetah-v5", env_type="gymnasium", num_envs=num_envs, num_threads=args.cores, seed=args.seed)
    obs_size, act_size = envs.observation_space.shape[0], envs.action_space.shape[0]
    policy = network(obs_size, hidden, act_size, 0.01, activation)
    value = network(obs_size, hidden, 1, 1.0, activation)
    log_std = nn.Parameter(torch.zeros(act_size))
    parameters = [*policy.parameters(), *value.parameters(), log_std]
    optimizer = torch.optim.Adam(parameters, lr=rate, eps=1e-5)
    progress, obs_moments, return_moments = Progress(args), Moments((obs_size,)), Moments(())
    obs, _ = envs.reset()
    discounted, episode = np.zeros(num_envs), np.zeros(num_envs)
    env_steps = 0

    def normalised(raw):
        scaled = (raw - obs_moments.mean) / np.sqrt(obs_moments.variance + 1e-8)
        return torch.from_numpy(np.clip(scaled, -10, 10).astype(np.float32))

    def distribution(rows):
        return torch.distributions.Normal(policy(rows), log_std.exp())

    while True:
        shape = (horizon, num_envs)
        observations = torch.zeros(*shape, obs_size)
        actions = torch.zeros(*shape, act_size)
        log_probs, rewards, dones, values = (torch.zeros(shape) for _ in range(4))
        for step in range(horizon):
            obs_moments.update(obs)
            row = normalised(obs)
            with torch.no_grad():
                chosen = distribution(row)
                action = chosen.sample()
                log_probs[step] = chosen.log_prob(action).sum(-1)
                values[step] = value(row).flatten()
            observations[step], actions[step] = row, action
            obs, reward, terminated, truncated, _ = envs.step(np.clip(action.numpy(), -1, 1).astype(np.float64))
            done = terminated | truncated
            episode += reward
            for finished in np.flatnonzero(done):
                progress.episode(episode[finished])
            episode[done] = 0
            discounted = discounted * gamma + reward
            return_moments.update(discounted)
            discounted[done] = 0
            scaled = np.clip(reward / np.sqrt(return_moments.variance + 1e-8), -10, 10)
            rewards[step], dones[step] = torch.from_numpy(scaled).float(), torch.from_numpy(done).float()
        env_steps += horizon * num_envs
        with torch.no_grad():
            following, advantage = value(normalised(obs)).flatten(), torch.zeros(num_envs)
            advantages = torch.zeros(shape)
            for step in reversed(range(horizon)):
                kept = 1 - dones[step]
                advantage = rewards[step] + gamma * kept * following - values[step] + gamma * lam * kept * advantage
                advantages[step], following = advantage, values[step]
        flat = [x.reshape(horizon * num_envs, *x.shape[2:]) for x in (observations, actions, log_probs, advantages)]
        returns = (advantages + values).flatten()
        for _ in range(epochs):
            for index in torch.randperm(horizon * num_envs).split(minibatch):
                rows, act, old, adv = (x[index] for x in flat)
                adv = (adv - adv.mean()) / (adv.std() + 1e-8)
                chosen = distribution(rows)
                change = chosen.log_prob(act).sum(-1) - old
                ratio = change.exp()
                loss = torch.max(-adv * ratio, -adv * ratio.clamp(1 - clip, 1 + clip)).mean()
                loss = loss + 0.5 * 0.5 * (value(rows).flatten() - returns[index]).pow(2).mean()
                optimizer.zero_grad()
                loss.backward()
                nn.utils.clip_grad_norm_(parameters, 0.5 if study else 1.0)
                optimizer.step()
                if kl_target:
                    kl = (ratio - 1 - change).mean().item()
                    rate = max(1e-6, rate / 1.5) if kl > 2 * kl_target else min(1e-2, rate * 1.5) if kl < kl_target / 2 else rate
                    optimizer.param_groups[0]["lr"] = rate
        if progress.iteration(env_steps):
            return


if __name__ == "__main__":
    main()
