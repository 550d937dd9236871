# SPDX-License-Identifier: Apache-2.0
"""Environments of other libraries that external_study.py learns."""

import gymnasium


def spread():
    """MPE's simple_spread: three agents, one reward for all, 25 steps."""
    from mpe2 import simple_spread_v3

    return simple_spread_v3.parallel_env(max_cycles=25, local_ratio=0)


def minigrid():
    import minigrid.wrappers

    return minigrid.wrappers.ImgObsWrapper(gymnasium.make("MiniGrid-Empty-5x5-v0"))
