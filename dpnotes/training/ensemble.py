"""Train many runs as one batched model."""

import time
from collections.abc import Callable, Sequence
from itertools import groupby
from typing import NamedTuple

import numpy as np
import torch
from torch import nn

from dpnotes._checks import check_integer, require_kind
from dpnotes.training.networks import Builder
from dpnotes.training.schedule import Schedule

Risk = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]


class Fit(NamedTuple):
    """A trained ensemble.

    Attributes
    ----------
    network : nn.Module
        The network of all runs, in evaluation mode; it gives scores of shape (runs, n, 1).
    scores : dict of int to ndarray of float32, shape (runs, tests)
        Test scores after each evaluated epoch.
    """

    network: nn.Module
    scores: dict[int, np.ndarray]


def fit(
    build: Builder,
    inputs: torch.Tensor,
    labels: torch.Tensor,
    risks: Sequence[Risk],
    test_inputs: torch.Tensor,
    schedule: Schedule,
    *,
    seed: int,
    names: Sequence[str] | None = None,
    report: Callable[[str], None] | None = None,
) -> Fit:
    """Train an ensemble, one run for each row of labels, on the device that holds the inputs.

    Parameters
    ----------
    build : callable
        Makes the network from the number of runs and a generator, as `reference_cnn` does.
    inputs : Tensor
        Examples along the first dimension: images (n, height, width, channels) or features (n, d).
    labels : Tensor of floats in {-1, +1}, shape (runs, n)
        The labels that each run sees.
    risks : sequence of callables
        What each run minimises: a function of scores and labels, both of shape (some runs, batch),
        that returns a risk for each run. Consecutive runs with the same function are computed
        together.
    test_inputs : Tensor
        Examples to score, of the kind of `inputs`.
    schedule : Schedule
        How to train.
    seed : int
        The seed of initial weights, order and dropout, the same for every run.
    names : sequence of str, optional
        Names of the runs in error messages; by default their indices.
    report : callable, optional
        Called with a line of progress after each epoch.

    Returns
    -------
    Fit
        The trained network and the test scores.

    Raises
    ------
    ValueError
        If the shapes of inputs, labels, risks and names do not fit together, a label is neither
        -1 nor +1, there are fewer inputs than a batch holds, or the seed is out of range.
    FloatingPointError
        If a run's risk is no longer finite: a diverged run, or a batch without one of the classes.

    Examples
    --------
    >>> from dpnotes.training import linear
    >>> from torch.nn.functional import softplus
    >>> x = torch.tensor([[-2.0], [-1.0], [1.0], [2.0]])
    >>> logistic = lambda scores, labels: softplus(-labels * scores).mean(-1)
    >>> schedule = Schedule(epochs=20, batch_size=4, learning_rate=0.1)
    >>> fit(linear(1), x, x.T.sign(), [logistic], x, schedule, seed=0).scores[20].round() > 0
    array([[False, False,  True,  True]])
    """
    require_kind("build", build, Callable, "callable")
    tensors = {"inputs": inputs, "test_inputs": test_inputs, "labels": labels}
    for name, value in tensors.items():
        require_kind(name, value, torch.Tensor, "a tensor")
    require_kind("risks", risks, Sequence, "a sequence of functions")
    require_kind("schedule", schedule, Schedule, "a Schedule")
    require_kind("names", names, Sequence | None, "a sequence of strings or None")
    require_kind("report", report, Callable | None, "callable or None")
    _check_runs(inputs, labels, risks)
    names = range(len(risks)) if names is None else names
    if len(names) != len(risks):
        raise ValueError(f"names must be as many as risks, {len(risks)}, got {len(names)}")
    if len(inputs) < schedule.batch_size:
        raise ValueError(f"inputs must fill a batch of {schedule.batch_size}, got {len(inputs)}")
    seed = check_integer("seed", seed, low=0, high=2**63 - 1)
    generator = torch.Generator().manual_seed(seed)
    network = build(len(risks), generator).to(inputs.device, memory_format=torch.channels_last)
    groups = [(risk, len(list(runs))) for risk, runs in groupby(risks)]
    optimizer = make_optimizer(network, schedule)
    scores, kept = {}, {*schedule.evaluate_after, schedule.epochs}
    for epoch in range(1, schedule.epochs + 1):
        began = time.perf_counter()
        means = run_epoch(network, optimizer, schedule, inputs, labels, groups, generator)
        _check_finite(names, means, epoch)
        if epoch in kept:
            scores[epoch] = predict(network, test_inputs)
        if report:
            seconds = time.perf_counter() - began
            report(f"epoch {epoch}/{schedule.epochs}, {len(risks)} runs, {seconds:.1f} s")
    return Fit(network.eval(), scores)


def predict(network: nn.Module, inputs: torch.Tensor, *, batch_size: int = 500) -> np.ndarray:
    """Return the scores that every run gives to every example, in single precision.

    Parameters
    ----------
    network : nn.Module
        As `fit` trains it.
    inputs : Tensor
        Examples along the first dimension, on the device of the network.
    batch_size : int
        Examples at a time, at least 1.

    Returns
    -------
    ndarray of float32, shape (runs, n)
        Scores; positive ones say +1.

    Examples
    --------
    >>> from dpnotes.training import linear
    >>> network = linear(1)(2, torch.Generator().manual_seed(0))
    >>> predict(network, torch.ones(3, 1)).shape
    (2, 3)
    """
    require_kind("network", network, nn.Module, "a torch module")
    require_kind("inputs", inputs, torch.Tensor, "a tensor")
    if inputs.ndim < 2:
        raise ValueError(f"inputs must have a row for each record, got shape {(*inputs.shape,)}")
    batch_size = check_integer("batch_size", batch_size, low=1)
    network.eval()
    with torch.no_grad():
        scores = [network(batch).squeeze(-1) for batch in inputs.split(batch_size)]
    return torch.cat(scores, dim=1).cpu().numpy()


def make_optimizer(network: nn.Module, schedule: Schedule) -> torch.optim.Optimizer:
    """Return the optimizer of all runs."""
    rates = {"lr": schedule.learning_rate, "weight_decay": schedule.weight_decay}
    return torch.optim.Adam(network.parameters(), **rates, amsgrad=True, fused=True)


def run_epoch(
    network: nn.Module,
    optimizer: torch.optim.Optimizer,
    schedule: Schedule,
    inputs: torch.Tensor,
    labels: torch.Tensor,
    groups: list[tuple[Risk, int]],
    generator: torch.Generator,
) -> np.ndarray:
    """Pass over the data once, in a fresh order, and return each run's mean risk."""
    network.train()
    size = schedule.batch_size
    order = torch.randperm(len(inputs), generator=generator).to(inputs.device)
    batches = order[: len(order) // size * size].split(size)
    total = torch.zeros(len(labels), device=inputs.device)
    for batch in batches:
        with torch.autocast(
            inputs.device.type, torch.bfloat16, enabled=schedule.precision == "bfloat16"
        ):
            scores = network(inputs[batch]).squeeze(-1)
        risks = _risks_of(scores.float(), labels[:, batch], groups)
        optimizer.zero_grad()
        # The weights of a run enter only its own risk, so the sum has the gradient of each run.
        risks.sum().backward()
        optimizer.step()
        total += risks.detach()
    return (total / len(batches)).cpu().numpy()


def _risks_of(
    scores: torch.Tensor, labels: torch.Tensor, groups: list[tuple[Risk, int]]
) -> torch.Tensor:
    sizes = [size for _, size in groups]
    parts = zip(groups, scores.split(sizes), labels.split(sizes), strict=True)
    return torch.cat([risk(*part) for (risk, _), *part in parts])


def _check_finite(names: Sequence[str], means: np.ndarray, epoch: int) -> None:
    for name, mean in zip(names, means, strict=True):
        if not np.isfinite(mean):
            raise FloatingPointError(
                f"the risk of run {name} is {mean} in epoch {epoch}: it diverged, or a batch "
                "lacks one of its classes"
            )


def _check_runs(inputs: torch.Tensor, labels: torch.Tensor, risks: Sequence[Risk]) -> None:
    if not risks or not all(map(callable, risks)):
        raise ValueError("risks must hold one function or more, and nothing else")
    expected = (len(risks), len(inputs))
    if tuple(labels.shape) != expected:
        raise ValueError(
            f"labels must have a row for each of the risks and a column for each of the inputs, "
            f"{expected}, got {tuple(labels.shape)}"
        )
    if not bool(((labels == 1) | (labels == -1)).all()):
        raise ValueError("labels must be -1 or +1; a record is not")
