"""The balanced risk, the AUC risk over pairs, and the class shares after labels are flipped."""

import math
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch.nn import functional

from dpnotes._checks import check_probability, require_kind
from dpnotes.symmetric_loss.margins import (
    Loss,
    barrier_hinge_loss,
    check_barrier,
    hinge_loss,
    ramp_loss,
    square_loss,
    unhinged_loss,
)

# Up to this many scores in a row, compute all pairs of all rows at once.
_FEW = 256
# The largest number of pairs in memory at a time.
_CHUNK = 1 << 22


def ber_risk(
    scores: torch.Tensor, labels: torch.Tensor, loss: Loss, *, check: bool = True
) -> torch.Tensor:
    """Return the balanced risk: the mean of the two classes' mean losses.

    Parameters
    ----------
    scores : Tensor of float32 or float64, shape (n,) or (runs, n)
        The model's scores; positive ones say +1.
    labels : Tensor of the shape of `scores`
        Labels in {-1, +1}.
    loss : callable
        A loss of the margin, element by element.
    check : bool
        Whether to check the labels, for which the CPU must wait for a GPU. Without the check, a
        missing class gives NaN.

    Returns
    -------
    Tensor of shape () or (runs,)
        Risks, differentiable in the scores.

    Raises
    ------
    ValueError
        If the shapes differ, a label is neither -1 nor +1, or a class is missing.
    TypeError
        If scores are not a tensor of float32 or float64, labels not one of numbers, the loss not
        callable or not taken element by element, or `check` not a boolean.

    Notes
    -----
    Definition 2 in Bi and Suppakitpaisarn (2022), with the averages over each class.

    Examples
    --------
    >>> ber_risk(torch.tensor([2.0, -1.0, 3.0]), torch.tensor([1, 1, -1]), unhinged_loss)
    tensor(2.2500)
    """
    positive, negative = _class_weights(*_class_members(scores, labels, loss, check))
    losses = _losses(loss, torch.where(positive > 0, scores, -scores))
    return ((positive + negative) * losses).sum(-1).to(scores.dtype) / 2


def auc_risk(
    scores: torch.Tensor, labels: torch.Tensor, loss: Loss, *, check: bool = True
) -> torch.Tensor:
    """Return the mean loss of the score difference over all pairs of a positive and a negative.

    Parameters
    ----------
    scores : Tensor of float32 or float64, shape (n,) or (runs, n)
        The model's scores; only their differences matter.
    labels : Tensor of the shape of `scores`
        Labels in {-1, +1}.
    loss : callable
        A loss of the margin, element by element; its parameters can be set by `functools.partial`.
    check : bool
        As in `ber_risk`.

    Returns
    -------
    Tensor of shape () or (runs,)
        Risks, differentiable in the scores (once).

    Notes
    -----
    Definition 1 in Bi and Suppakitpaisarn (2022). The losses of this module that are piecewise
    linear (barrier hinge, hinge, ramp, unhinged) take O(n log n) time and O(n) memory, the square
    loss O(n) time; any other goes through all pairs in chunks, in O(n^2) time and O(n) memory. At
    the kink of a loss the derivative is the mean of its two slopes, as for `torch.maximum`. Sums
    are in double precision.

    Examples
    --------
    >>> auc_risk(torch.tensor([2.0, -1.0, 3.0]), torch.tensor([1, 1, -1]), hinge_loss)
    tensor(3.5000)
    """
    members = _class_members(scores, labels, loss, check)
    pieces = _pieces_of(loss)
    if pieces:
        by_row = scores.device.type == "cpu" and (scores.ndim == 1 or scores.shape[-1] > _FEW)
        compute = _risks_by_row if by_row else _batched_risks
        return _Sloped.apply(scores, *compute(scores.detach(), *members, pieces))
    positive, negative = _class_weights(*members)
    if loss is square_loss:
        return _mean_square(scores, positive, negative)
    if scores.shape[-1] <= _FEW:
        losses = _losses(loss, scores.unsqueeze(-1) - scores.unsqueeze(-2)).to(positive.dtype)
        return torch.einsum("...i,...ij,...j", positive, losses, negative).to(scores.dtype)
    if scores.ndim == 1:
        return _Sloped.apply(scores, *_mean_in_chunks(scores.detach(), *members, loss))
    rows = zip(scores, labels, strict=True)
    return torch.stack([auc_risk(*row, loss, check=False) for row in rows])


def corruption_rates(positive_fraction: float, keep_probability: float) -> tuple[float, float]:
    """Return the shares of true positives among those labelled +1 and among those labelled -1.

    Parameters
    ----------
    positive_fraction : float
        The share of positives among the true labels, strictly between 0 and 1.
    keep_probability : float
        The probability that a reported label is the true one, strictly between 0 and 1.

    Returns
    -------
    (float, float)
        pi and pi'. Learning is possible if pi > pi', that is, if `keep_probability` is above 1/2.

    Notes
    -----
    By Bayes' rule. On balanced classes pi - pi' = 2 p - 1, which is tanh(epsilon / 2) for private
    labels of cost epsilon.

    Examples
    --------
    >>> corruption_rates(0.5, 0.75)
    (0.75, 0.25)
    """
    share = check_probability("positive_fraction", positive_fraction)
    p = check_probability("keep_probability", keep_probability)
    kept, lost = p * share, (1 - p) * share
    return kept / (kept + (1 - p) * (1 - share)), lost / (lost + p * (1 - share))


class _Pieces(NamedTuple):
    """A straight line, and (knee, change of slope) for each kink to its right and to its left."""

    intercept: float
    slope: float
    right: tuple[tuple[float, float], ...] = ()
    left: tuple[tuple[float, float], ...] = ()


def _barrier_pieces(b: float = 200.0, r: float = 50.0) -> _Pieces:
    b, r = check_barrier(b, r)
    return _Pieces(r, -1.0, right=((r, b + 1),), left=((-b * r / (b - 1), b - 1),))


_PIECES: dict[Loss, Callable[..., _Pieces]] = {
    barrier_hinge_loss: _barrier_pieces,
    hinge_loss: lambda: _Pieces(0.0, 0.0, left=((1.0, 1.0),)),
    ramp_loss: lambda: _Pieces(0.5, -0.5, right=((1.0, 0.5),), left=((-1.0, -0.5),)),
    unhinged_loss: lambda: _Pieces(1.0, -1.0),
}


def _pieces_of(loss: Loss) -> _Pieces | None:
    """Return the pieces of a piecewise linear loss of this package, None for other losses."""
    if isinstance(loss, partial) and not loss.args:
        return _PIECES[loss.func](**loss.keywords) if loss.func in _PIECES else None
    return _PIECES[loss]() if loss in _PIECES else None


class _Sloped(torch.autograd.Function):
    """Risks whose slopes in the scores are known, because they were computed along with them."""

    @staticmethod
    def forward(
        ctx: Any,  # noqa: ANN401
        scores: torch.Tensor,
        value: torch.Tensor,
        slopes: torch.Tensor,
    ) -> torch.Tensor:
        ctx.save_for_backward(slopes.to(scores.dtype))
        return value.to(scores.dtype)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, grad: torch.Tensor) -> tuple[torch.Tensor | None, ...]:  # noqa: ANN401
        [slopes] = ctx.saved_tensors
        return grad.unsqueeze(-1) * slopes, None, None


def _risks_by_row(
    scores: torch.Tensor, positive: torch.Tensor, negative: torch.Tensor, pieces: _Pieces
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the risks and slopes of all rows in numpy, which sorts faster than torch on a CPU."""
    n = scores.shape[-1]
    rows = [each.reshape(-1, n).numpy() for each in (scores, positive, negative)]
    slopes = np.empty(rows[0].shape)
    # As in torch, overflow gives infinity without a warning.
    with np.errstate(over="ignore", invalid="ignore"):
        values = [_risk_of_row(*row, pieces) for row in zip(*rows, slopes, strict=True)]
    value = torch.tensor(values, dtype=torch.float64, device=scores.device)
    return value.reshape(scores.shape[:-1]), torch.from_numpy(slopes).reshape(scores.shape)


def _risk_of_row(
    scores: NDArray, positive: NDArray, negative: NDArray, slopes: NDArray, pieces: _Pieces
) -> float:
    """Return the risk of one row, and write its slopes into `slopes`."""
    places = [np.flatnonzero(members) for members in (positive, negative)]
    classes = [scores[place].astype(np.float64) for place in places]
    n, m = (members.size for members in classes)
    if n * m == 0:
        slopes[:] = math.nan
        return math.nan
    value = pieces.intercept + pieces.slope * float(classes[0].mean() - classes[1].mean())
    steps = [np.full(n, pieces.slope / n), np.full(m, -pieces.slope / m)]
    # As in `_batched_risks`, with the index of the upper class.
    kinks = [(-knee, change, 0) for knee, change in pieces.right]
    kinks += [(knee, change, 1) for knee, change in pieces.left]
    kinks = [k for k in kinks if classes[k[2]].max() + k[0] >= classes[1 - k[2]].min()]
    if kinks:
        orders = [members.argsort() for members in classes]
        places, classes = (
            [each[order] for each, order in zip(both, orders, strict=True)]
            for both in (places, classes)
        )
    for shift, change, upper in kinks:
        excess, risen, fallen = _excess_of_row(classes[upper], shift, classes[1 - upper])
        value += change * excess
        steps[upper] += change * risen
        steps[1 - upper] -= change * fallen
    for place, step in zip(places, steps, strict=True):
        slopes[place] = step
    return value


def _excess_of_row(upper: NDArray, shift: float, lower: NDArray) -> tuple[float, NDArray, NDArray]:
    """Return the excess of `_mean_excess` for sorted classes, and the slopes of each class."""
    moved, pairs = upper + shift, upper.size * lower.size
    below, up_to = (np.searchsorted(lower, moved, side) for side in ("left", "right"))
    sums = np.append(0.0, lower.cumsum())
    excess = float((moved * below - sums[below]).sum()) / pairs
    passed = sum(np.bincount(place, minlength=lower.size + 1) for place in (below, up_to))
    over = 2 * upper.size - passed[:-1].cumsum()
    return excess, (below + up_to) / (2 * pairs), over / (2 * pairs)


def _batched_risks(
    scores: torch.Tensor, positive: torch.Tensor, negative: torch.Tensor, pieces: _Pieces
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the risks and slopes of all rows at once, in torch."""
    positive, negative = _class_weights(positive, negative)
    wide = scores.double()
    value = pieces.intercept + pieces.slope * ((positive - negative) * wide).sum(-1)
    slopes = pieces.slope * (positive - negative)
    # A pair is beyond a kink on the right if the positive, moved left by it, is above the
    # negative; on the left, if the negative, moved right, is above the positive.
    kinks = [(-knee, change, positive, negative) for knee, change in pieces.right]
    kinks += [(knee, change, negative, positive) for knee, change in pieces.left]
    kinks = [kink for kink in kinks if _is_reached(wide, *kink)]
    if kinks:
        ordered, order = wide.contiguous().sort()
        for shift, change, upper, lower in kinks:
            weights = upper.gather(-1, order), lower.gather(-1, order)
            excess, excess_slopes = _mean_excess(ordered, shift, *weights)
            value += change * excess
            slopes.scatter_add_(-1, order, change * excess_slopes)
    return value, slopes


def _is_reached(
    scores: torch.Tensor, shift: float, _: float, upper: torch.Tensor, lower: torch.Tensor
) -> bool:
    """Whether any pair is at a kink or beyond it; usually none reaches the barriers."""
    highest = scores.masked_fill(upper == 0, -math.inf).amax(-1) + shift
    return bool((highest >= scores.masked_fill(lower == 0, math.inf).amin(-1)).any())


def _mean_excess(
    scores: torch.Tensor, shift: float, upper: torch.Tensor, lower: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the mean of max(s_i + shift - s_j, 0) over all pairs, and its slope in every score.

    `scores` are sorted along the last dimension; `upper` holds the weight of each score as s_i, and
    `lower` its weight as s_j.
    """
    moved = scores + shift
    below, up_to = (torch.searchsorted(scores, moved, right=right) for right in (False, True))
    under, weighted = _running_sums(lower), _running_sums(lower * scores)
    excess = moved * under.gather(-1, below) - weighted.gather(-1, below)
    # A pair at the kink counts half, so average over both ends of each run of ties.
    covered = (under.gather(-1, below) + under.gather(-1, up_to)) / 2
    # s_i + shift is above s_j if and only if more than j scores are below it.
    passed = torch.zeros_like(under)
    for place in (below, up_to):
        passed.scatter_add_(-1, place, upper / 2)
    over = passed.sum(-1, keepdim=True) - passed.cumsum(-1)[..., :-1]
    return (upper * excess).sum(-1), upper * covered - lower * over


def _running_sums(values: torch.Tensor) -> torch.Tensor:
    return functional.pad(values.cumsum(-1), (1, 0))


def _mean_in_chunks(
    scores: torch.Tensor, positive: torch.Tensor, negative: torch.Tensor, loss: Loss
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the mean of any loss over all pairs, about `_CHUNK` of them at a time, and slopes."""
    slopes = torch.zeros_like(scores, dtype=torch.float64)
    total, pos, neg = slopes.sum(), scores[positive], scores[negative]
    slopes_pos, slopes_neg = [], torch.zeros_like(neg, dtype=torch.float64)
    for rows in pos.split(max(1, _CHUNK // max(1, len(neg)))):
        # Enable gradients even if the caller disabled them: the slopes are computed here.
        with torch.inference_mode(False), torch.enable_grad():
            margins = (rows[:, None] - neg).requires_grad_()
            losses = _losses(loss, margins).sum(dtype=torch.float64)
        [chunk] = torch.autograd.grad(losses, margins)
        total += losses.detach()
        slopes_pos.append(chunk.sum(1, dtype=torch.float64))
        slopes_neg -= chunk.sum(0, dtype=torch.float64)
    slopes[positive], slopes[negative] = torch.cat(slopes_pos), slopes_neg
    pairs = len(pos) * len(neg)
    return total / pairs, slopes / pairs


def _mean_square(
    scores: torch.Tensor, positive: torch.Tensor, negative: torch.Tensor
) -> torch.Tensor:
    """Return the mean over all pairs of (1 - difference)^2 from means and variances."""
    wide = scores.double()
    means = [(weights * wide).sum(-1, keepdim=True) for weights in (positive, negative)]
    spread = positive * (wide - means[0]) ** 2 + negative * (wide - means[1]) ** 2
    return ((1 - means[0] + means[1]).squeeze(-1) ** 2 + spread.sum(-1)).to(scores.dtype)


def _class_members(
    scores: torch.Tensor, labels: torch.Tensor, loss: Loss, check: bool
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return which records are positive, and which are negative."""
    _check_arguments(scores, labels, loss, check)
    members = labels > 0, labels < 0
    if check and not bool((labels.abs() == 1).all()):
        raise ValueError("labels must be -1 or +1; a record is not")
    for name, of_class in zip(("+1", "-1"), members, strict=True):
        if check and not bool(of_class.any(-1).all()):
            raise ValueError(f"labels must hold both classes; class {name} is missing")
    return members


def _class_weights(
    positive: torch.Tensor, negative: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return 1 / (number of positives) for each positive, 0 elsewhere; the same for negatives."""
    return tuple(
        members / members.sum(-1, keepdim=True).double() for members in (positive, negative)
    )


def _check_arguments(scores: torch.Tensor, labels: torch.Tensor, loss: Loss, check: bool) -> None:
    require_kind("scores", scores, torch.Tensor, "a tensor")
    require_kind("labels", labels, torch.Tensor, "a tensor")
    if scores.dtype not in (torch.float32, torch.float64):
        raise TypeError(f"scores must be float32 or float64, got {scores.dtype}")
    if labels.dtype == torch.bool or labels.is_complex():
        raise TypeError(f"labels must be numbers, -1 or +1, got {labels.dtype}")
    if scores.ndim not in (1, 2):
        raise ValueError(f"scores must have one or two dimensions, got {tuple(scores.shape)}")
    if labels.shape != scores.shape:
        raise ValueError(f"labels must have the shape of scores, got {tuple(labels.shape)}")
    require_kind("loss", loss, Callable, "callable")
    require_kind("check", check, bool, "True or False")


def _losses(loss: Loss, margins: torch.Tensor) -> torch.Tensor:
    """Return the losses of margins, refusing a loss that does not work element by element."""
    losses = loss(margins)
    if not isinstance(losses, torch.Tensor) or losses.shape != margins.shape:
        raise TypeError("loss must return a tensor of the shape of its margin")
    return losses
