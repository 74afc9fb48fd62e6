"""The exact check: what a table of output distributions costs, with nothing left to chance."""

from collections.abc import Iterable, Iterator

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpnotes._checks import as_array, as_floats, as_numbers, check_real
from dpnotes.release import _require_list

_SUM_TOLERANCE = 1e-9
_SMALLEST = float(np.finfo(float).tiny)  # below it a float loses its digits
_PAIR_BLOCK = 2**20  # numbers gathered at once: 8 MiB


def exact_epsilon(
    output_distribution: ArrayLike, *, neighbours: Iterable[tuple[int, int]] | None = None
) -> float:
    """Return the epsilon that a mechanism really has, from the distribution of its outputs.

    Parameters
    ----------
    output_distribution : array_like of shape (inputs, outputs)
        Row i holds the probability of every output on input i. Rows sum to 1 within 1e-9.
    neighbours : iterable of (int, int), optional
        The pairs of rows that are neighbours; each is compared in both directions. By default every
        two rows are, as in the local model.

    Returns
    -------
    float
        The largest log-ratio of two neighbouring probabilities of one output, in nats. An output
        that neither input can give (0/0) costs nothing; one that only one of them can give (x/0)
        makes it infinite. A single row has no neighbours and gives 0.

    Notes
    -----
    A mechanism M is epsilon-differentially private if P(M(D) in S) <= exp(epsilon) P(M(D') in S)
    for all neighbours D, D' and all S (Dwork, McSherry, Nissim and Smith, 2006). With countably
    many outputs the worst S is a single output. Over all pairs the largest ratio of a column is
    its maximum over its minimum, so one pass over the matrix is enough.

    Examples
    --------
    >>> answers = [[0.75, 0.25], [0.25, 0.75]]
    >>> round(exact_epsilon(answers), 6)
    1.098612
    >>> exact_epsilon([[0.5, 0.5, 0.0], [0.5, 0.4, 0.1]])
    inf
    """
    rows = _check_distribution(output_distribution)
    if neighbours is None:
        return _find_largest_loss(rows.max(axis=0), rows.min(axis=0))
    return max(_find_largest_loss(*pair) for pair in _gather_pairs(rows, neighbours))


def exact_delta(
    output_distribution: ArrayLike,
    epsilon: float,
    *,
    neighbours: Iterable[tuple[int, int]] | None = None,
) -> float:
    """Return the smallest delta that a mechanism needs at a given epsilon.

    Parameters
    ----------
    output_distribution : array_like of shape (inputs, outputs)
        Row i holds the probability of every output on input i. Rows sum to 1 within 1e-9.
    epsilon : float
        The epsilon that is claimed, in nats, finite and at least 0.
    neighbours : iterable of (int, int), optional
        The pairs of rows that are neighbours; each is compared in both directions. By default every
        two rows are, as in the local model.

    Returns
    -------
    float
        A probability. It is 0 once epsilon reaches the `exact_epsilon` of the same table, and at
        epsilon 0 it is the largest total variation distance between two neighbours. A single row
        has no neighbours and gives 0.

    Notes
    -----
    A mechanism is (epsilon, delta)-differentially private if P(S) <= exp(epsilon) Q(S) + delta for
    the output distributions P, Q of all neighbours and all sets S (Dwork, Kenthapadi, McSherry,
    Mironov and Naor, 2006). The worst S holds exactly the outputs o with P(o) > exp(epsilon) Q(o),
    so the smallest delta is the sum of the positive parts of P(o) - exp(epsilon) Q(o). Single
    outputs are not enough here: each may exceed its limit by a little, and all of them together by
    a lot.

    Examples
    --------
    >>> one_in_a_thousand = [[0.999, 0.001, 0.0], [0.999, 0.0, 0.001]]  # publishes the truth
    >>> exact_delta(one_in_a_thousand, epsilon=0.0)
    0.001
    >>> exact_epsilon(one_in_a_thousand)
    inf
    """
    rows = _check_distribution(output_distribution)
    epsilon = check_real("epsilon", epsilon, low=0.0, allowed="a finite number of at least 0")
    excesses = [_find_largest_excess(*pair, epsilon) for pair in _gather_pairs(rows, neighbours)]
    # Rows may sum to a little more than 1.
    return min(max(excesses, default=0.0), 1.0)


def trade_off(
    output_distribution: ArrayLike,
    type_one_error: ArrayLike,
    *,
    neighbours: Iterable[tuple[int, int]] | None = None,
) -> NDArray[np.float64]:
    """Return the least error of type II that an attacker can reach at given errors of type I.

    Parameters
    ----------
    output_distribution : array_like of shape (inputs, outputs)
        Row i holds the probability of every output on input i. Rows sum to 1 within 1e-9.
    type_one_error : array_like of numbers in [0, 1]
        Where to evaluate the curve: how often the attacker may say "the neighbour" when it is not.
    neighbours : iterable of (int, int), optional
        The pairs of rows that are neighbours; each is compared in both directions. By default every
        two rows are, as in the local model.

    Returns
    -------
    ndarray of the shape of `type_one_error`
        The least error of type II, a probability: how often the best attacker says "not the
        neighbour" when it is. It is the lowest of the curves of all neighbours. A single row has
        no neighbours and gives 1 minus the error of type I, which is what guessing reaches.

    Notes
    -----
    To tell the output distribution Q from P, the best tests say "Q" for the outputs with the
    largest Q(o)/P(o), and toss a coin for the last one of them (the lemma of Neyman and Pearson,
    1933). So the trade-off function T is piecewise linear, and what is returned is T itself, not a
    bound. A mechanism is f-differentially private if T >= f for all neighbours (Dong, Roth and Su,
    2022).

    The curve contains all that the other two functions say: `exact_delta` at epsilon is the largest
    1 - T(a) - exp(epsilon) a over all a in [0, 1].

    Examples
    --------
    >>> answers = [[0.75, 0.25], [0.25, 0.75]]
    >>> trade_off(answers, [0.0, 0.1, 0.25, 1.0])
    array([1.  , 0.7 , 0.25, 0.  ])
    """
    rows = _check_distribution(output_distribution)
    errors = as_numbers("type_one_error", type_one_error)
    if not ((errors >= 0) & (errors <= 1)).all():
        raise ValueError("type_one_error must hold numbers in [0, 1]")
    curve = np.asarray(1 - errors)
    for pair in _gather_pairs(rows, neighbours):
        for first, second in zip(*pair, strict=True):
            np.minimum(curve, _interpolate(*_find_corners(first, second), errors), out=curve)
    return curve


def _check_distribution(output_distribution: ArrayLike) -> NDArray[np.float64]:
    """Return the matrix as floats, or name the row that is not a distribution."""
    name = "output_distribution"
    given = as_array(name, output_distribution, with_booleans=True)
    if given.ndim != 2 or given.size == 0:
        raise ValueError(f"{name} must be a matrix with a row and a column, got {given.shape}")
    is_text = given.dtype.kind == "O" and any(isinstance(v, str | bytes) for v in given.flat)
    if is_text or given.dtype.kind not in "biufO":
        found = "words" if is_text else f"dtype {given.dtype}"
        raise TypeError(f"{name} must hold real numbers, got {found}")
    try:
        rows = as_floats(given)
    except OverflowError:
        raise ValueError(f"{name} must hold probabilities in [0, 1], one is far above") from None
    except (TypeError, ValueError) as error:
        raise TypeError(f"{name} must hold real numbers") from error
    if given.dtype != rows.dtype and (small := (np.abs(rows) < _SMALLEST) & (given != 0)).any():
        raise ValueError(
            f"{name} must hold probabilities that a float can hold with all its digits, "
            f"row {small.any(axis=1).argmax()} has a smaller one"
        )
    improper = ~((rows >= 0) & (rows <= 1 + _SUM_TOLERANCE))
    if improper.any():
        row, value = np.argwhere(improper)[0][0], rows[improper][0]
        raise ValueError(f"{name} must hold probabilities in [0, 1], row {row} has {value}")
    sums = rows.sum(axis=1)
    row = np.abs(sums - 1).argmax()
    if abs(sums[row] - 1) > _SUM_TOLERANCE:
        raise ValueError(f"{name} must have rows that sum to 1, row {row} sums to {sums[row]}")
    return rows


def _check_pairs(neighbours: Iterable[tuple[int, int]], rows: int) -> NDArray[np.integer]:
    """Return the pairs of row numbers as an (m, 2) array, or refuse them."""
    given = neighbours if hasattr(neighbours, "dtype") else _require_list("neighbours", neighbours)
    pairs = as_array("neighbours", given)
    if pairs.ndim != 2 or pairs.shape[1] != 2 or len(pairs) == 0:
        raise ValueError(f"neighbours must be pairs of row numbers, got shape {pairs.shape}")
    if pairs.dtype.kind not in "iu":
        raise TypeError(f"neighbours must be pairs of integers, got dtype {pairs.dtype}")
    outside = ((pairs < 0) | (pairs >= rows)).any(axis=1)
    if outside.any():
        pair = tuple(pairs[outside.argmax()].tolist())
        raise ValueError(f"neighbours must be row numbers in [0, {rows}), got {pair}")
    return pairs


def _gather_pairs(
    rows: NDArray, neighbours: Iterable[tuple[int, int]] | None
) -> Iterator[tuple[NDArray, NDArray]]:
    """Yield both sides of all pairs, or of those given, in both directions, a block at a time."""
    if neighbours is None:
        pairs = np.column_stack(np.triu_indices(len(rows), 1))
    else:
        pairs = _check_pairs(neighbours, len(rows))
    pairs = np.concatenate([pairs, pairs[:, ::-1]])
    block = max(1, _PAIR_BLOCK // (2 * rows.shape[1]))
    for start in range(0, len(pairs), block):
        first, second = pairs[start : start + block].T
        yield rows[first], rows[second]


def _find_largest_loss(high: NDArray, low: NDArray) -> float:
    """Return the largest log(high / low), or 0 where no high is above its low."""
    above = high > low
    return float(_compute_losses(high[above], low[above]).max(initial=0.0))


def _find_largest_excess(first: NDArray, second: NDArray, epsilon: float) -> float:
    """Return the largest sum of the positive parts of first - exp(epsilon) second, over rows."""
    above = first > second
    high = first[above]
    excess = np.zeros(first.shape)
    # 1 - exp(epsilon - loss) keeps its digits where the two terms cancel, and never overflows.
    excess[above] = -high * np.expm1(np.minimum(epsilon - _compute_losses(high, second[above]), 0))
    return float(excess.sum(axis=1).max())


def _compute_losses(high: NDArray, low: NDArray) -> NDArray[np.float64]:
    """Return log(high / low) for 0 <= low < high, infinite where low is 0."""
    with np.errstate(divide="ignore"):
        loss = np.log(high) - np.log(low)
    # Close probabilities cancel in a difference of logarithms; distant ones overflow in a ratio.
    near = high <= 2 * low
    loss[near] = np.log1p((high[near] - low[near]) / low[near])
    return loss


def _find_corners(first: NDArray, second: NDArray) -> tuple[NDArray, NDArray]:
    """Return the errors of both types where the trade-off function of two rows has its corners."""
    possible = first > 0  # an output that only the second can give is always told apart
    first, second = first[possible], second[possible]
    with np.errstate(divide="ignore"):
        order = np.argsort(np.log(first) - np.log(second))
    type_one = np.append(0.0, first[order].cumsum())
    type_two = np.append(second[order][::-1].cumsum()[::-1], 0.0)  # small ones keep their digits
    return np.minimum(type_one, 1.0), np.minimum(type_two, 1.0)


def _interpolate(type_one: NDArray, type_two: NDArray, errors: NDArray) -> NDArray[np.float64]:
    """Return the second errors on the lines between corners, at the given first errors."""
    right = np.minimum(np.searchsorted(type_one, errors, side="right"), len(type_one) - 1)
    start, width = type_one[right - 1], np.diff(type_one)[right - 1]
    # No slope is computed: it overflows where two corners are a subnormal number apart.
    share = np.where(errors < type_one[right], (errors - start) / np.where(width, width, 1), 1.0)
    return (1 - share) * type_two[right - 1] + share * type_two[right]
