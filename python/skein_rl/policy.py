# SPDX-License-Identifier: Apache-2.0
"""Acts as a checkpoint's policy does, with NumPy alone. docs/policy-format.md describes the files."""

from __future__ import annotations

import json
import pathlib
import re
import struct
from typing import Any, Callable, Union

import numpy as np
from numpy.typing import ArrayLike, NDArray

from skein_rl.errors import SkeinError
from skein_rl.transforms import KNOWN, Actions, Floats, Observations, bounds_of

DATA = 65
FORMAT = 1
_DTYPES: dict[str, np.dtype[Any]] = {"F32": np.dtype("<f4"), "F64": np.dtype("<f8")}
_ACTIVATIONS: dict[str, Callable[[Floats], Floats]] = {
    "tanh": np.tanh,
    "elu": lambda x: np.where(x > 0, x, np.expm1(np.minimum(x, 0))),
    "relu": lambda x: np.maximum(x, 0),
}


class Policy:
    """A policy of one checkpoint, from an observation of the environment to an action in it: env.hide and env.transforms
    are part of it. `obs_size` is what it sees, after these. Any array of rows gives as many actions.

    One with a memory, or with stacked observations, (`has_memory`) keeps a state for each row from call to call: reset() at
    the start of an episode. Not for several threads at once.
    """

    def __init__(self, manifest: dict[str, Any], tensors: dict[str, NDArray[Any]]) -> None:
        self.env_id: str = manifest["env_id"]
        self.env_steps: int = manifest["env_steps"]
        self.digest: str = manifest["digest"]
        config: str = manifest["config_yaml"]
        model = _section(config, "model")
        transforms: list[dict[str, Any]] = manifest.get("transforms", [])
        for transform in transforms:
            if transform.keys() - KNOWN:
                raise SkeinError(f"between {self.env_id} and its policy is env.transforms {next(iter(transform))}, which this "
                                 "release does not know", DATA)
        self._tensors = tensors
        self._activation = _ACTIVATIONS[model["activation"]]
        names = [name for name in tensors if re.fullmatch(r"(policy|trunk)\.\d+\.weight", name)]
        names.sort(key=lambda name: int(name.split(".")[1]))
        names.append("policy.head.weight")
        self._layers = [(tensors[name], tensors[name.replace("weight", "bias")]) for name in names]
        self._normalizes = model["normalize_observations"] == "true"
        if self._normalizes:
            self._mean = tensors["obs_normalizer.mean"].astype(np.float32)
            exported = tensors.get("obs_normalizer.inv_std")  # An exported file has this, a checkpoint the variance.
            self._scale = (1 / np.sqrt(tensors["obs_normalizer.variance"] + 1e-8)).astype(np.float32) if exported is None else exported
        self._gates = {"gru": 3, "lstm": 4}.get(model.get("memory", "none"), 0)
        self._state: list[Floats] = []
        first = tensors["memory.weight_ih"] if self._gates else self._layers[0][0]
        self.obs_size: int = first.shape[1]
        self.action_size: int = self._layers[-1][0].shape[0]
        # Choices have no standard deviation.
        self.discrete: bool = "log_std" not in tensors
        self._observations = Observations(self.env_id, transforms, self.obs_size)
        self.has_memory: bool = self._gates > 0 or self._observations.remembers
        self._begins: Union[NDArray[np.bool_], None] = None  # Rows whose next observation begins an episode; None: all.
        spec: dict[str, Any] = manifest.get("spec", {})
        bounds = bounds_of(spec["action_low"], spec["action_high"]) if "action_low" in spec else None
        self._actions = Actions(transforms, bounds, _section(config, "env").get("clip_actions_for_reward") != "false")

    def __call__(self, observation: ArrayLike, deterministic: bool = True,
                 rng: Union[np.random.Generator, None] = None) -> Any:
        """The action for each observation, as the environment takes it: reals, clipped where an exported file clips them and
        transformed, or the number of a choice. With `deterministic` false it is drawn with `rng`. Old checkpoints that
        neither say the bounds of their environment nor have a transform that does are not clipped."""
        head = self.head(observation)
        if deterministic:
            return np.argmax(head, axis=-1) if self.discrete else self._actions(head)
        rng = rng if rng is not None else np.random.default_rng()
        if self.discrete:  # The largest of the logits with Gumbel noise is distributed as their softmax.
            return np.argmax(head + rng.gumbel(size=head.shape), axis=-1)
        noise = rng.standard_normal(head.shape)
        return self._actions((head + np.exp(self._tensors["log_std"]) * noise).astype(np.float32))

    def head(self, observation: ArrayLike) -> Floats:
        """The means of the actions as they leave the network, not clipped and not transformed, or the logits of the choices."""
        x = np.asarray(observation, np.float32)
        self._observations.check(x)
        begins = self._begin(x.shape[:-1])
        x = self._observations.see(x, begins)
        if self._normalizes:
            x = (x - self._mean) * self._scale
        x = np.clip(x, -10, 10)
        if self._gates:
            x = self._remember(x, begins)
        for weight, bias in self._layers[:-1]:
            x = self._activation(x @ weight.T + bias)
        weight, bias = self._layers[-1]
        return np.asarray(x @ weight.T + bias, np.float32)

    def reset(self, mask: Union[ArrayLike, None] = None) -> None:
        """Begins new episodes: in all rows, or in those where `mask` is true. Without a memory there is nothing to do."""
        if mask is None:
            self._begins, self._state = None, []
            self._observations.reset()
        elif self._begins is not None:
            self._begins[np.asarray(mask, bool)] = True

    def _begin(self, rows: tuple[int, ...]) -> NDArray[np.bool_]:
        """Which rows begin an episode with this observation."""
        begins = np.ones(rows, bool) if self._begins is None else self._begins
        if begins.shape != rows:
            raise ValueError(f"got {rows} rows of observations, and the policy remembers {begins.shape}; call reset() in between")
        if self.has_memory:
            self._begins = np.zeros(rows, bool)
        return begins

    def _remember(self, x: Floats, begins: NDArray[np.bool_]) -> Floats:
        """One step of torch.nn.GRUCell or LSTMCell."""
        weights = [self._tensors["memory." + name] for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")]
        shape = (*x.shape[:-1], weights[1].shape[1])
        before = self._state or [np.zeros(shape, np.float32) for _ in range(self._gates - 2)]
        self._state = [np.where(begins[..., None], np.float32(0), part) for part in before]
        from_input = x @ weights[0].T + weights[2]
        from_state = self._state[0] @ weights[1].T + weights[3]
        if self._gates == 3:
            gates = np.split(from_input, 3, axis=-1)
            inner = np.split(from_state, 3, axis=-1)
            r, z = _sigmoid(gates[0] + inner[0]), _sigmoid(gates[1] + inner[1])
            n = np.tanh(gates[2] + r * inner[2])
            self._state = [(1 - z) * n + z * self._state[0]]
        else:
            i, f, g, o = np.split(from_input + from_state, 4, axis=-1)
            c = _sigmoid(f) * self._state[1] + _sigmoid(i) * np.tanh(g)
            self._state = [_sigmoid(o) * np.tanh(c), c]
        return self._state[0]

    def __repr__(self) -> str:
        return f"<policy for {self.env_id} after {self.env_steps} env steps, digest {self.digest}>"


def load(path: Union[str, pathlib.Path]) -> Policy:
    """The policy of a checkpoint's folder, of the newest checkpoint of a run's folder, or of a file that `skein export --format
    safetensors` wrote. SkeinError 65: it is none of them, or of a format that this does not know."""
    folder = pathlib.Path(path)
    if folder.is_file():
        return _load_exported(folder)
    if (folder / "checkpoints" / "latest").is_dir():
        folder = folder / "checkpoints" / "latest"
    if not (folder / "manifest.json").is_file():
        raise SkeinError(f"{str(folder)!r} is no checkpoint: no manifest.json there; give a run's folder or a "
                         "checkpoint's", DATA)
    try:
        manifest = json.loads((folder / "manifest.json").read_text())
        if manifest["format"] != FORMAT:
            raise SkeinError(f"{folder}: its format is {manifest['format']}, and this knows {FORMAT}", DATA)
        return Policy(manifest, read_safetensors(folder / "model.safetensors"))
    except (OSError, ValueError, KeyError, struct.error) as error:
        raise SkeinError(f"{folder} cannot be read: {type(error).__name__} {error}", DATA) from None


def _load_exported(path: pathlib.Path) -> Policy:
    try:
        entries, _ = _split(path.read_bytes())
        metadata = {key.removeprefix("skein."): value for key, value in entries["__metadata__"].items()}
        if metadata["format"] != str(FORMAT):
            raise SkeinError(f"{path}: its format is {metadata['format']}, and this knows {FORMAT}", DATA)
        manifest = {**metadata, "env_steps": int(metadata["env_steps"]), "transforms": json.loads(metadata["transforms"]),
                    "spec": json.loads(metadata["spec"])}
        return Policy(manifest, read_safetensors(path))
    except (OSError, ValueError, KeyError, TypeError, AttributeError, struct.error) as error:
        raise SkeinError(f"{path} is no policy that skein export --format safetensors has written: {type(error).__name__} {error}",
                         DATA) from None


def read_safetensors(path: pathlib.Path) -> dict[str, NDArray[Any]]:
    """Name and array of each tensor. ValueError: the file is damaged."""
    entries, body = _split(path.read_bytes())
    return {
        name: np.frombuffer(body[slice(*entry["data_offsets"])], _DTYPES[entry["dtype"]]).reshape(entry["shape"])
        for name, entry in entries.items() if name != "__metadata__"
    }


def _split(raw: bytes) -> tuple[dict[str, Any], bytes]:
    """What a safetensors file says of its tensors, by name, and their bytes."""
    (size,) = struct.unpack("<Q", raw[:8])
    return json.loads(raw[8:8 + size]), raw[8 + size:]


def _section(config: str, name: str) -> dict[str, str]:
    """The settings right below one section, as text. Of the YAML that Skein itself writes: two spaces for each level."""
    match = re.search(rf"^{name}:\n((?:[ ].*\n?)*)", config, re.MULTILINE)
    return dict(re.findall(r"^  (\w+):[ ]?(.*)$", match[1], re.MULTILINE)) if match else {}


def _sigmoid(x: Floats) -> Floats:
    return np.asarray(0.5 * (np.tanh(0.5 * x) + 1), np.float32)
