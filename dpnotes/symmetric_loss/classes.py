"""Losses for any number of classes: functions of a score for each class, and of a label.

Below, k is the number of classes and u the softmax of the scores. A loss is symmetric when its sum
over all k labels is the same for all scores. Losses have the type of the scores, and overflow to
infinity beyond its largest number (65,504 in half precision).
"""

import math
from collections.abc import Callable

import torch

from dpnotes._checks import check_probability, check_real, require_kind
from dpnotes.symmetric_loss.margins import check_floats

ClassLoss = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]

_INTEGERS = (torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64)


def mean_absolute_error(logits: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    """Return the summed absolute error of the probabilities, 2 (1 - u_label); symmetric.

    Parameters
    ----------
    logits : Tensor of floats, shape (..., k)
        A score for each of k >= 2 classes; only their differences matter.
    labels : Tensor of integers in [0, k), shape (...)
        Labels, reported or true.

    Returns
    -------
    Tensor of shape (...)
        Losses, differentiable in the scores.

    Notes
    -----
    The sum over the classes of ``|u_j - [j is the label]|``, from 0 to 2 (Ghosh, Kumar and
    Sastry, 2017). Its sum over all labels is 2 (k - 1). Its slope in score j is
    2 u_label (u_j - [j is the label]), which vanishes if the model finds the label unlikely.

    Examples
    --------
    >>> mean_absolute_error(torch.zeros(1, 4), torch.tensor([2]))
    tensor([1.5000])
    """
    return -2 * torch.expm1(_log_likelihood(logits, labels)).to(logits.dtype)


def normalized_cross_entropy(logits: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    """Return the share of the label in the cross entropies of all labels; symmetric.

    Parameters
    ----------
    logits : Tensor of floats, shape (..., k)
        A score for each of k >= 2 classes; only their differences matter.
    labels : Tensor of integers in [0, k), shape (...)
        Labels, reported or true.

    Returns
    -------
    Tensor of shape (...)
        Losses, differentiable in the scores.

    Notes
    -----
    log u_label / sum_j log u_j, from 0 to 1 (Ma et al., 2020). Its sum over all labels is 1.

    Examples
    --------
    >>> normalized_cross_entropy(torch.zeros(1, 4), torch.tensor([2]))
    tensor([0.2500])
    """
    logits, labels = _check_classes(logits, labels)
    scores = _widened(logits)
    most = torch.finfo(scores.dtype).max / (8 * scores.shape[-1])
    # The loss is a ratio, so scores whose logarithms would overflow can be scaled down.
    large = bool((scores.abs() > most).any())
    logarithms = _shrunk_log_softmax(scores) if large else scores.log_softmax(-1)
    return (_of_label(logarithms, labels) / logarithms.sum(-1)).to(logits.dtype)


def multiclass_unhinged_loss(logits: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    """Return 1 minus the score of the label relative to the mean of the others; symmetric.

    Parameters
    ----------
    logits : Tensor of floats, shape (..., k)
        A score for each of k >= 2 classes; only their differences matter.
    labels : Tensor of integers in [0, k), shape (...)
        Labels, reported or true.

    Returns
    -------
    Tensor of shape (...)
        Losses, differentiable in the scores.

    Notes
    -----
    1 - (s_label - mean of the other scores). Its sum over all labels is k. It is linear in the
    scores, so convex and unbounded below. With two classes it is `unhinged_loss` of the difference
    of the scores.

    Examples
    --------
    >>> multiclass_unhinged_loss(torch.tensor([[3.0, 1.0, 0.0]]), torch.tensor([0]))
    tensor([-1.5000])
    """
    logits, labels = _check_classes(logits, labels)
    scores = _widened(logits)
    # Subtract before averaging, because a mean of large scores loses the digits of differences.
    above = (_of_label(scores, labels).unsqueeze(-1) - scores).mean(-1)
    return (1 - above * (scores.shape[-1] / (scores.shape[-1] - 1))).to(logits.dtype)


def cross_entropy(logits: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    """Return the cross entropy -log u_label, in nats; not symmetric.

    Parameters
    ----------
    logits : Tensor of floats, shape (..., k)
        A score for each of k >= 2 classes; only their differences matter.
    labels : Tensor of integers in [0, k), shape (...)
        Labels, reported or true.

    Returns
    -------
    Tensor of shape (...)
        Losses, differentiable in the scores.

    Examples
    --------
    >>> cross_entropy(torch.zeros(1, 4), torch.tensor([2]))
    tensor([1.3863])
    """
    return -_log_likelihood(logits, labels).to(logits.dtype)


def generalized_cross_entropy(
    logits: torch.Tensor, labels: torch.Tensor, power: float = 0.7
) -> torch.Tensor:
    """Return (1 - u_label^power) / power: between cross entropy and absolute error; not symmetric.

    Parameters
    ----------
    logits : Tensor of floats, shape (..., k)
        A score for each of k >= 2 classes; only their differences matter.
    labels : Tensor of integers in [0, k), shape (...)
        Labels, reported or true.
    power : float
        In (0, 1]. At 1 the loss is half of the absolute error; near 0 it approaches the cross
        entropy.

    Returns
    -------
    Tensor of shape (...)
        Losses, differentiable in the scores.

    Notes
    -----
    Zhang and Sabuncu (2018), who use 0.7. Its sum over all labels lies between
    (k - k^(1 - power)) / power, for equal probabilities, and (k - 1) / power.

    Examples
    --------
    >>> generalized_cross_entropy(torch.zeros(1, 4), torch.tensor([2]), power=0.5)
    tensor([1.])
    """
    bounds = {"low": 0.0, "high": 1.0, "low_open": True}
    power = check_real("power", power, **bounds, allowed="a number above 0 and at most 1")
    logarithms = _log_likelihood(logits, labels)
    exponents, digits = power * logarithms, torch.finfo(logarithms.dtype)
    # Use the limit for a tiny power or exponent, where the exponential or the quotient loses its
    # digits.
    near_zero = (exponents > -digits.eps / 4) | (power < digits.tiny)
    losses = -torch.expm1(exponents) / max(power, digits.tiny)
    return torch.where(near_zero, -logarithms, losses).to(logits.dtype)


def corrected_cross_entropy(
    logits: torch.Tensor, labels: torch.Tensor, keep_probability: float
) -> torch.Tensor:
    """Return the cross entropy of a *reported* label, given the probability that it is true.

    Parameters
    ----------
    logits : Tensor of floats, shape (..., k)
        A score for each of k >= 2 classes; only their differences matter.
    labels : Tensor of integers in [0, k), shape (...)
        Labels as `randomized_response.privatize` reports them.
    keep_probability : float
        The probability p that a reported label is the true one, strictly between 0 and 1. Each
        other label is reported with q = (1 - p) / (k - 1).

    Returns
    -------
    Tensor of shape (...)
        Losses in nats, differentiable in the scores.

    Notes
    -----
    Forward correction (Patrini et al., 2017). If a label is j with probability u_j, then a report
    is j with probability q + (p - q) u_j; the loss is minus the logarithm of this for the reported
    label. It is not symmetric. With two classes it is `corrected_logistic_loss` of the difference
    of the scores.

    Examples
    --------
    >>> logits = torch.tensor([[0.0, 0.0, 0.0], [99.0, 0.0, 0.0]])
    >>> corrected_cross_entropy(logits, torch.tensor([1, 1]), keep_probability=0.5)
    tensor([1.0986, 1.3863])
    """
    p = check_probability("keep_probability", keep_probability)
    logits, labels = _check_classes(logits, labels)
    logarithms = _widened(logits).log_softmax(-1)
    truth = _of_label(logarithms, labels)
    lie = logarithms.scatter(-1, labels.unsqueeze(-1), -math.inf).logsumexp(-1)
    q = (1 - p) / (logits.shape[-1] - 1)
    # Start from the smaller of u and 1 - u, so that values and slopes keep their digits.
    few, many = _log_mixture(q, p, truth), _log_mixture(p, q, lie)
    return -torch.where(truth <= lie, few, many).to(logits.dtype)


def _log_likelihood(logits: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    """Return the log-probability of the label, in single precision at least."""
    logits, labels = _check_classes(logits, labels)
    return _of_label(_widened(logits).log_softmax(-1), labels)


def _log_mixture(rest: float, chance: float, logarithm: torch.Tensor) -> torch.Tensor:
    """Return log(rest + (chance - rest) u) given log u; valid only for log u up to -1/2."""
    apart = abs(chance - rest)
    log_apart = math.log(apart) if apart else -math.inf
    logarithm = logarithm.clamp(max=-0.5)
    if chance > rest:
        log_rest = torch.full_like(logarithm, math.log(rest))
        return torch.logaddexp(log_rest, log_apart + logarithm)
    return math.log(rest) + torch.log1p(-(logarithm + (log_apart - math.log(rest))).exp())


def _widened(logits: torch.Tensor) -> torch.Tensor:
    """Return scores in single precision at least."""
    return logits.float() if torch.finfo(logits.dtype).bits < 32 else logits


def _shrunk_log_softmax(scores: torch.Tensor) -> torch.Tensor:
    """Return the log-probabilities divided by 8 k, so that their sum does not overflow."""
    factor = 8 * scores.shape[-1]
    small = scores / factor
    below = small - small.amax(-1, keepdim=True)
    return below - (factor * below).exp().sum(-1, keepdim=True).log() / factor


def _of_label(values: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    return values.gather(-1, labels.unsqueeze(-1)).squeeze(-1)


def _check_classes(logits: torch.Tensor, labels: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Return scores of classes, and labels as integers of 64 bits, or refuse them."""
    logits = check_floats("logits", logits)
    require_kind("labels", labels, torch.Tensor, "a tensor")
    if logits.ndim == 0 or logits.shape[-1] < 2:
        raise ValueError(f"logits must have two classes or more, got shape {tuple(logits.shape)}")
    if labels.dtype not in _INTEGERS:
        raise TypeError(f"labels must be integers, got {labels.dtype}")
    if labels.shape != logits.shape[:-1]:
        expected = tuple(logits.shape[:-1])
        raise ValueError(f"labels must have shape {expected}, got {tuple(labels.shape)}")
    categories, labels = logits.shape[-1], labels.long()
    if not bool(((labels >= 0) & (labels < categories)).all()):
        raise ValueError(f"labels must be in [0, {categories}); a record is not")
    return logits, labels
