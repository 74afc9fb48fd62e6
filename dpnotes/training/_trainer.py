"""The state of a training, and the file in which it waits to go on."""

import hashlib
import os
import pickle
from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np
import torch
from torch import nn

from dpnotes._files import written_whole
from dpnotes.training.schedule import Schedule

Risk = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]

# What torch may raise on the wrong bytes; a file that cannot be opened says so itself.
_UNREADABLE = (
    *(pickle.UnpicklingError, RuntimeError, OSError, EOFError, LookupError),
    *(AttributeError, TypeError, ValueError),
)


class Trainer:
    """What changes while an ensemble is trained, and can be put aside and taken up again."""

    def __init__(
        self,
        network: nn.Module,
        generator: torch.Generator,
        schedule: Schedule,
        identity: dict[str, Any],
    ) -> None:
        self.network, self.generator, self.schedule = network, generator, schedule
        self.identity, self.scores = identity, dict[int, np.ndarray]()
        self.optimizer = torch.optim.Adam(
            network.parameters(),
            lr=schedule.learning_rate,
            weight_decay=schedule.weight_decay,
            amsgrad=True,
            fused=True,
        )

    def run_epoch(
        self, inputs: torch.Tensor, labels: torch.Tensor, groups: list[tuple[Risk, int]]
    ) -> np.ndarray:
        """Pass over the data once, and return each run's mean risk over the batches."""
        self.network.train()
        size = self.schedule.batch_size
        order = torch.randperm(len(inputs), generator=self.generator).to(inputs.device)
        batches = order[: len(order) // size * size].split(size)
        total = torch.zeros(len(labels), device=inputs.device)
        for batch in batches:
            with _autocast(inputs.device, self.schedule.precision):
                scores = self.network(inputs[batch]).squeeze(-1)
            risks = _risks_of(scores.float(), labels[:, batch], groups)
            self.optimizer.zero_grad()
            # A run's weights enter its own risk only: the gradient of the sum is that of each.
            risks.sum().backward()
            self.optimizer.step()
            total += risks.detach()
        return (total / len(batches)).cpu().numpy()

    def save(self, path: str | os.PathLike, epoch: int) -> None:
        """Write the state under its name only when it has been written to the end."""
        state = {
            "identity": self.identity,
            "epoch": epoch,
            "network": self.network.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "generator": self.generator.get_state(),
            "scores": {epoch: torch.from_numpy(kept) for epoch, kept in self.scores.items()},
        }
        with written_whole("checkpoint", path) as out:
            torch.save(state, out)

    def restore(self, path: str | os.PathLike) -> int:
        """Take up a saved state, and return the epoch that comes next."""
        with open(path, "rb") as file:
            try:
                # Numbers and tensors alone: a pickle may call any function, and is never let to.
                state = torch.load(file, map_location="cpu", weights_only=True)
                found = state["identity"]
            except _UNREADABLE as error:
                raise _damaged(path) from error
        if found != self.identity:
            raise ValueError(
                "checkpoint must be of the same runs, labels, seed, schedule, inputs, network and "
                f"risks, got {path}"
            )
        try:
            return self._take_up(state)
        except _UNREADABLE as error:
            raise _damaged(path) from error

    def _take_up(self, state: dict[str, Any]) -> int:
        self.network.load_state_dict(state["network"])
        self.optimizer.load_state_dict(state["optimizer"])
        self.generator.set_state(state["generator"])
        self.scores = {epoch: kept.numpy() for epoch, kept in state["scores"].items()}
        return state["epoch"] + 1


def _damaged(path: str | os.PathLike) -> ValueError:
    return ValueError(
        f"checkpoint must be one that fit wrote, and {path} is damaged or something else: delete "
        "it to train anew"
    )


def _risks_of(
    scores: torch.Tensor, labels: torch.Tensor, groups: list[tuple[Risk, int]]
) -> torch.Tensor:
    sizes = [size for _, size in groups]
    parts = zip(groups, scores.split(sizes), labels.split(sizes), strict=True)
    return torch.cat([risk(*part) for (risk, _), *part in parts])


def _autocast(device: torch.device, precision: str) -> torch.autocast:
    return torch.autocast(device.type, torch.bfloat16, enabled=precision == "bfloat16")


def identify(
    seed: int,
    schedule: Schedule,
    names: Sequence[str],
    tensors: dict[str, torch.Tensor],
    network: nn.Module,
    groups: list[tuple[Risk, int]],
) -> dict[str, Any]:
    """Return what a checkpoint must agree in; of the tensors, which may be private, digests.

    Functions cannot be compared, so risks are told apart by what they say of a few scores.
    """
    labels, runs = tensors["labels"], len(names)
    scores = torch.linspace(-60, 60, 8, device=labels.device).repeat(runs, 1)
    signs = torch.tensor([1, 1, -1, -1, 1, -1, 1, -1]).to(labels).repeat(runs, 1)
    shapes = [[name, *weights.shape] for name, weights in network.state_dict().items()]
    return {
        "seed": seed,
        **asdict(schedule),
        "names": [str(name) for name in names],
        **{name: _digest(tensor) for name, tensor in tensors.items()},
        "network": [str(network), shapes],
        "risks": [f"{risk:.5g}" for risk in _risks_of(scores, signs, groups).tolist()],
    }


def _digest(tensor: torch.Tensor) -> str:
    found = hashlib.sha256(f"{tuple(tensor.shape)} {tensor.dtype}".encode())
    found.update(tensor.detach().cpu().contiguous().view(torch.uint8).numpy())
    return found.hexdigest()
