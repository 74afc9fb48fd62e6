"""From Rényi divergences, at some orders or as zCDP, to epsilon at a delta."""

import math

import numpy as np
from numpy.typing import ArrayLike
from scipy import optimize, special

from dpnotes._checks import (
    as_numbers,
    check_choice,
    check_epsilon,
    check_probability,
    check_real,
    shown,
)
from dpnotes.accounting.costs import HARDLY_ANY_NOISE, PrivacyCost

CONVERSIONS = ("improved", "classic")
# 600 orders from 1.001 to 10^7, each excess over 1 about 4 % above the one before.
DEFAULT_ORDERS = tuple((1 + np.geomspace(1e-3, 1e7, 600)).tolist())

_LARGEST_ORDER = 1e100  # its square is a double


def epsilon_from_rdp(
    rdp: ArrayLike, orders: ArrayLike, delta: float, *, conversion: str = "improved"
) -> PrivacyCost:
    """Convert Rényi divergences that hold for all records to an epsilon at a delta.

    Parameters
    ----------
    rdp : array_like of float, shape (orders,)
        Divergences, in nats, not negative; infinite ones promise nothing. They must hold for *all*
        neighbours: divergences computed from records give a secret cost.
    orders : array_like of float, shape (orders,)
        Their orders, above 1.
    delta : float
        The probability with which the loss may be larger, strictly between 0 and 1.
    conversion : {"improved", "classic"}
        "classic" adds log(1 / delta) / (order - 1), as early papers did; the other is never above.

    Returns
    -------
    PrivacyCost
        The smallest epsilon over the orders; 0 where a divergence is small against delta.

    Notes
    -----
    "classic" is Proposition 3 of Mironov (2017). "improved" is Proposition 12 of Canonne, Kamath
    and Steinke (2020), rdp + log(1 - 1 / order) - log(order delta) / (order - 1); and it is 0 where
    delta is at least sqrt(1 - exp(-rdp)), which bounds the total variation (Bretagnolle and Huber).

    Examples
    --------
    >>> round(float(epsilon_from_rdp([0.1, 0.8], [2, 16], 1e-5, conversion="classic")), 6)
    1.567528
    """
    epsilon, _ = best_epsilon(rdp, orders, delta, conversion=conversion)
    return PrivacyCost(epsilon, delta)


def best_epsilon(
    rdp: ArrayLike, orders: ArrayLike, delta: float, *, conversion: str = "improved"
) -> tuple[float, float]:
    """Convert Rényi divergences to the smallest epsilon, and say at which order it is.

    Parameters
    ----------
    rdp : array_like of float, shape (orders,)
        Divergences, in nats, not negative. If they depend on records, so does the result.
    orders : array_like of float, shape (orders,)
        Their orders, above 1.
    delta : float
        The probability with which the loss may be larger, strictly between 0 and 1.
    conversion : {"improved", "classic"}
        See `epsilon_from_rdp`.

    Returns
    -------
    tuple of two floats
        Epsilon and the order.

    Examples
    --------
    >>> best_epsilon([0.1, 0.8], [2, 16], 1e-5, conversion="classic")[1]
    16.0
    """
    orders = check_orders(orders)
    rdp = _check_divergences(rdp, orders)
    delta = check_probability("delta", delta)
    check_choice("conversion", conversion, CONVERSIONS)
    if conversion == "classic":
        epsilons = np.where(rdp == 0, 0.0, rdp - math.log(delta) / (orders - 1))
    else:
        epsilons = _improved(rdp, orders, delta)
        epsilons = np.where(delta * delta + np.expm1(-rdp) >= 0, 0.0, np.maximum(epsilons, 0.0))
    best = int(epsilons.argmin())
    return float(epsilons[best]), float(orders[best])


def epsilon_from_zcdp(rho: float, delta: float) -> PrivacyCost:
    """Convert zero-concentrated differential privacy to an epsilon at a delta.

    Parameters
    ----------
    rho : float
        The divergence at every order is at most rho times the order; at least 0. Those of several
        answers are added.
    delta : float
        The probability with which the loss may be larger, strictly between 0 and 1.

    Returns
    -------
    PrivacyCost
        The smallest epsilon over all orders above 1.

    Notes
    -----
    Bun and Steinke (2016) define it; `epsilon_from_rdp` has the conversion. Any order gives a valid
    epsilon, so the result holds even if the search for the best order is inexact.

    Examples
    --------
    >>> round(float(epsilon_from_zcdp(100 * 0.1**2 / 8, 1e-5)), 4)
    2.1657
    """
    rho = check_real("rho", rho, low=0.0, allowed="a number of at least 0")
    delta = check_probability("delta", delta)
    if -math.expm1(-rho) <= delta * delta:
        return PrivacyCost(0.0, delta)
    if rho > HARDLY_ANY_NOISE**2:
        # The minimum of the classic conversion, because an order this close to 1 rounds to 1.
        return PrivacyCost(rho + 2 * math.sqrt(rho) * math.sqrt(-math.log(delta)), delta)

    def epsilon(log_excess: float) -> float:
        order = 1 + math.exp(log_excess)
        return float(_improved(rho * order, order, delta))

    # The classic conversion has its minimum at this order - 1, and the improved one nearby.
    centre = 0.5 * (math.log(-math.log(delta)) - math.log(rho))
    found = optimize.minimize_scalar(
        epsilon, bounds=(centre - 8, centre + 8), method="bounded", options={"xatol": 1e-10}
    )
    return PrivacyCost(max(0.0, float(found.fun)), delta)


def _improved(
    rdp: np.ndarray | float, order: np.ndarray | float, delta: float
) -> np.ndarray | float:
    """Return Proposition 12 of Canonne, Kamath and Steinke (2020), which may be negative."""
    return rdp + np.log1p(-1 / order) - np.log(order * delta) / (order - 1)


def laplace_rdp(loss: float, orders: ArrayLike) -> np.ndarray:
    """Return the Rényi divergence of Laplace noise.

    Parameters
    ----------
    loss : float
        The largest privacy loss, sensitivity / scale; positive and finite.
    orders : array_like of float, shape (orders,)
        Orders above 1.

    Returns
    -------
    ndarray of shape (orders,)
        Divergences, in nats; at most `loss`.

    Notes
    -----
    Mironov (2017), Table II: for order a it is log(a / (2 a - 1) exp((a - 1) loss) +
    (a - 1) / (2 a - 1) exp(-a loss)) / (a - 1).

    Examples
    --------
    >>> laplace_rdp(1.0, [2.0]).round(6)
    array([0.619124])
    """
    loss = check_epsilon(loss, "loss")
    moments = check_orders(orders) - 1
    if loss > 1e100:
        # For such losses the divergence equals the loss in doubles, whatever the order.
        return np.full(moments.shape, loss)
    return np.minimum(_laplace_log_moments(loss, moments) / moments, loss)


def _laplace_log_moments(loss: float, moments: np.ndarray) -> np.ndarray:
    """Return l times the Rényi divergence of order l + 1 of Laplace noise."""
    here, there = loss * moments, loss * (moments + 1)
    share, rest = (moments + 1) / (2 * moments + 1), moments / (2 * moments + 1)
    with np.errstate(over="ignore"):
        # The linear terms cancel, so they are left out: small losses keep their digits.
        small = np.log1p(share * _beyond_linear(here) + rest * _beyond_linear(-there))
    large = np.logaddexp(np.log(share) + here, np.log(rest) - there)
    return np.where(here < 1, small, large)


def _beyond_linear(x: np.ndarray) -> np.ndarray:
    """Return exp(x) - 1 - x."""
    near = np.clip(x, -1, 1)
    return np.where(x == near, near**2 / 2 * special.hyp1f1(1, 3, near), np.expm1(x) - x)


def check_orders(orders: ArrayLike, *, above: float = 1.0) -> np.ndarray:
    """Return orders as a one-dimensional array of floats, all above a bound.

    Parameters
    ----------
    orders : array_like of float, shape (orders,), or float
        One order or several.
    above : float
        What each must be above.

    Returns
    -------
    ndarray of float, shape (orders,)
        The orders.

    Examples
    --------
    >>> check_orders(2)
    array([2.])
    """
    above = check_real("above", above, low=0.0, allowed="a number of at least 0")
    array = as_numbers("orders", orders)
    if array.ndim > 1 or array.size == 0:
        raise ValueError(f"orders must be one number or a list of them, got shape {array.shape}")
    array = np.atleast_1d(array)
    if not np.all((array > above) & (array <= _LARGEST_ORDER)):
        raise ValueError(
            f"orders must be above {above} and at most {_LARGEST_ORDER}, got {shown(orders)}"
        )
    return array


def _check_divergences(rdp: ArrayLike, orders: np.ndarray) -> np.ndarray:
    array = np.atleast_1d(as_numbers("rdp", rdp))
    if array.shape != orders.shape or not np.all(array >= 0):
        raise ValueError(
            f"rdp must be numbers of at least 0, one for each of the {orders.size} orders, "
            f"got shape {array.shape}"
        )
    return array
