"""Two kinds of cost: one that may be published, and one that is as secret as the records."""

import math
from dataclasses import dataclass

from dpnotes._checks import check_delta, check_real

MOST_QUERIES = 10**6
SMALLEST = 5e-324  # the smallest double above 0
HARDLY_ANY_NOISE = 1e8  # a mu so large that simple bounds are exact


@dataclass(frozen=True, slots=True)
class PrivacyCost:
    """What a mechanism costs, whatever the records are; ``float(cost)`` is epsilon.

    Parameters
    ----------
    epsilon : float
        The privacy loss, in nats: at least 0, and infinite where nothing is promised.
    delta : float
        The probability, in [0, 1), with which the loss may be larger.

    Examples
    --------
    >>> float(PrivacyCost(1.5, 1e-5))
    1.5
    """

    epsilon: float
    delta: float

    def __post_init__(self) -> None:
        """Check both numbers and keep them as plain floats."""
        _check_cost(self)

    def __float__(self) -> float:
        """Return epsilon."""
        return self.epsilon

    def __format__(self, spec: str) -> str:
        """Format epsilon; without a format, return the repr."""
        return format(self.epsilon, spec) if spec else repr(self)


@dataclass(frozen=True, slots=True, repr=False)
class SecretCost:
    """A cost that was computed from the records, and is as secret as they are.

    Publishing it would be a release without noise. So it has no ``float()``, and its repr warns.
    Read ``cost.epsilon`` where you mean to.

    Parameters
    ----------
    epsilon : float
        The privacy loss at these records, in nats.
    delta : float
        The probability, in [0, 1), with which the loss may be larger.
    order : float or None
        The Rényi order at which epsilon is smallest, out of those given; None where there is none.
    answered : float
        How many queries were answered; the expected number before noise is drawn; NaN if unknown.

    Examples
    --------
    >>> SecretCost(1.5, 1e-5, 20.0, 100.0)
    SecretCost(epsilon=1.5, delta=1e-05, order=20.0, answered=100.0: looks at the records, do not \
publish)
    """

    epsilon: float
    delta: float
    order: float | None
    answered: float

    def __post_init__(self) -> None:
        """Check every field and keep it as a plain float."""
        _check_cost(self)
        if self.order is not None:
            order = check_real(
                "order", self.order, low=0.0, low_open=True, allowed="a positive number or None"
            )
            object.__setattr__(self, "order", order)
        if not (isinstance(self.answered, float) and math.isnan(self.answered)):
            allowed = "a number of at least 0, or NaN"
            answered = check_real("answered", self.answered, low=0.0, allowed=allowed)
            object.__setattr__(self, "answered", answered)

    def __repr__(self) -> str:
        """Return the fields with a warning not to publish them."""
        return (
            f"SecretCost(epsilon={self.epsilon}, delta={self.delta}, order={self.order}, "
            f"answered={self.answered}: looks at the records, do not publish)"
        )


def _check_cost(cost: PrivacyCost | SecretCost) -> None:
    epsilon = cost.epsilon
    if not (isinstance(epsilon, float) and epsilon == math.inf):
        epsilon = check_real("epsilon", epsilon, low=0.0, allowed="a number of at least 0")
    delta = check_delta(cost.delta)
    # A frozen dataclass can only be normalised underneath its own guard.
    object.__setattr__(cost, "epsilon", epsilon)
    object.__setattr__(cost, "delta", delta)
