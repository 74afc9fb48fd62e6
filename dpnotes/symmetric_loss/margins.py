"""Losses of a margin: label times score, or the difference of two scores."""

import math
from collections.abc import Callable

import torch
from torch.nn import functional

from dpnotes._checks import check_probability, check_real, require_kind

Loss = Callable[[torch.Tensor], torch.Tensor]


def barrier_hinge_loss(margin: torch.Tensor, b: float = 200.0, r: float = 50.0) -> torch.Tensor:
    """Return the barrier hinge loss: symmetric on [-r, r], yet convex and never negative.

    Parameters
    ----------
    margin : Tensor of floats
        Label times score, or the score of a positive less that of a negative.
    b : float
        The slope of the barriers, above 1.
    r : float
        Half the width of the symmetric part, positive; the loss is 0 at r.

    Returns
    -------
    Tensor
        Losses, of the shape of `margin`.

    Notes
    -----
    max(-b (r + z) + r, max(b (z - r), r - z)), Definition 3 in Bi and Suppakitpaisarn (2022) with
    the minus signs of Charoenphakdee et al. (2019). On [-r, r] it is r - z, with K = 2 r; the left
    barrier begins at -b r / (b - 1).

    False labels do not move its minimiser if a bound on the norm of the weights keeps the scores
    in [-r, r]. Without a bound or a penalty, training moves the scores to the barriers, and the
    barriers determine the minimum, even with true labels. The loss at z is r times that of width 1
    at z / r, so whether a width is large depends on the scale of the scores.

    Examples
    --------
    >>> barrier_hinge_loss(torch.tensor([-50.0, 0.0, 50.0, 51.0]))
    tensor([100.,  50.,   0., 200.])
    """
    z, (b, r) = check_margin(margin), check_barrier(b, r)
    return torch.maximum(-b * (r + z) + r, torch.maximum(b * (z - r), r - z))


def sigmoid_loss(margin: torch.Tensor) -> torch.Tensor:
    """Return the sigmoid loss 1 / (1 + e^z); symmetric with K = 1.

    Parameters
    ----------
    margin : Tensor of floats
        Label times score, or the score of a positive less that of a negative.

    Returns
    -------
    Tensor
        Losses, of the shape of `margin`.

    Examples
    --------
    >>> sigmoid_loss(torch.tensor([0.0]))
    tensor([0.5000])
    """
    return torch.sigmoid(-check_margin(margin))


def ramp_loss(margin: torch.Tensor) -> torch.Tensor:
    """Return the ramp loss (1 - z) / 2, clipped to [0, 1]; symmetric with K = 1.

    Parameters
    ----------
    margin : Tensor of floats
        Label times score, or the score of a positive less that of a negative.

    Returns
    -------
    Tensor
        Losses, of the shape of `margin`.

    Examples
    --------
    >>> ramp_loss(torch.tensor([-3.0, 0.0, 3.0]))
    tensor([1.0000, 0.5000, 0.0000])
    """
    z = check_margin(margin)
    return torch.minimum(torch.maximum((1 - z) / 2, z.new_zeros(())), z.new_ones(()))


def unhinged_loss(margin: torch.Tensor) -> torch.Tensor:
    """Return the unhinged loss 1 - z; symmetric with K = 2, convex, and unbounded below.

    Parameters
    ----------
    margin : Tensor of floats
        Label times score, or the score of a positive less that of a negative.

    Returns
    -------
    Tensor
        Losses, of the shape of `margin`.

    Examples
    --------
    >>> unhinged_loss(torch.tensor([-1.0, 3.0]))
    tensor([ 2., -2.])
    """
    return 1 - check_margin(margin)


def hinge_loss(margin: torch.Tensor) -> torch.Tensor:
    """Return the hinge loss max(0, 1 - z); not symmetric.

    Parameters
    ----------
    margin : Tensor of floats
        Label times score, or the score of a positive less that of a negative.

    Returns
    -------
    Tensor
        Losses, of the shape of `margin`.

    Examples
    --------
    >>> hinge_loss(torch.tensor([-1.0, 3.0]))
    tensor([2., 0.])
    """
    z = check_margin(margin)
    return torch.maximum(1 - z, z.new_zeros(()))


def logistic_loss(margin: torch.Tensor) -> torch.Tensor:
    """Return the logistic loss log(1 + e^-z), in nats; not symmetric.

    Parameters
    ----------
    margin : Tensor of floats
        Label times score, or the score of a positive less that of a negative.

    Returns
    -------
    Tensor
        Losses, of the shape of `margin`.

    Examples
    --------
    >>> logistic_loss(torch.tensor([0.0]))
    tensor([0.6931])
    """
    return -functional.logsigmoid(check_margin(margin))


def square_loss(margin: torch.Tensor) -> torch.Tensor:
    """Return the square loss (1 - z)^2; not symmetric.

    Parameters
    ----------
    margin : Tensor of floats
        Label times score, or the score of a positive less that of a negative.

    Returns
    -------
    Tensor
        Losses, of the shape of `margin`.

    Examples
    --------
    >>> square_loss(torch.tensor([-1.0, 3.0]))
    tensor([4., 4.])
    """
    return (1 - check_margin(margin)) ** 2


def savage_loss(margin: torch.Tensor) -> torch.Tensor:
    """Return the savage loss 1 / (1 + e^(2 z))^2; bounded, not symmetric.

    Parameters
    ----------
    margin : Tensor of floats
        Label times score, or the score of a positive less that of a negative.

    Returns
    -------
    Tensor
        Losses, of the shape of `margin`.

    Notes
    -----
    Masnadi-Shirazi and Vasconcelos (2008).

    Examples
    --------
    >>> savage_loss(torch.tensor([0.0]))
    tensor([0.2500])
    """
    return torch.sigmoid(-2 * check_margin(margin)) ** 2


def corrected_logistic_loss(margin: torch.Tensor, keep_probability: float) -> torch.Tensor:
    """Return the logistic loss of a *reported* label, given the probability that it is true.

    Parameters
    ----------
    margin : Tensor of floats
        Reported label times score.
    keep_probability : float
        The probability that a reported label is the true one, strictly between 0 and 1.

    Returns
    -------
    Tensor
        Losses, of the shape of `margin`, in nats.

    Notes
    -----
    Forward correction (Patrini et al., 2017). If a label is +1 with probability s(score), where s
    is the sigmoid, then a report is +1 with probability p s(score) + (1 - p) s(-score); the loss is
    minus the logarithm of the probability of the reported label.

    Examples
    --------
    >>> corrected_logistic_loss(torch.tensor([0.0, -99.0]), keep_probability=0.75)
    tensor([0.6931, 1.3863])
    """
    p, z = check_probability("keep_probability", keep_probability), check_margin(margin)
    truth, lie = functional.logsigmoid(z), functional.logsigmoid(-z)
    return -torch.logaddexp(math.log(p) + truth, math.log1p(-p) + lie)


def check_margin(margin: torch.Tensor) -> torch.Tensor:
    """Return margins, refusing anything but a tensor of floats."""
    return check_floats("margin", margin)


def check_barrier(b: float, r: float) -> tuple[float, float]:
    """Return the slope and the half width of a barrier hinge, or refuse them."""
    slope = check_real("b", b, low=1.0, low_open=True, allowed="a finite slope above 1")
    return slope, check_real("r", r, low=0.0, low_open=True, allowed="a positive finite number")


def check_floats(name: str, value: torch.Tensor) -> torch.Tensor:
    """Return a tensor of floats, refusing anything else."""
    require_kind(name, value, torch.Tensor, "a tensor")
    if not value.is_floating_point():
        raise TypeError(f"{name} must be floats, got {value.dtype}")
    return value
