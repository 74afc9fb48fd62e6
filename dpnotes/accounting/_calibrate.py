"""The least noise for a budget: one search for every mechanism whose cost falls as noise grows."""

import math
from collections.abc import Callable
from functools import cache

from scipy import optimize

from dpnotes._checks import check_epsilon, check_real


def calibrate(
    cost: Callable[[float], float],
    epsilon: float,
    low: float,
    high: float,
    *,
    start: float | None = None,
    tolerance: float = 1e-9,
) -> float:
    """Return the least noise whose cost is at most epsilon, up to a relative tolerance.

    Parameters
    ----------
    cost : callable
        Takes a noise from `low` to `high` and returns its cost: a `PrivacyCost` or a number of at
        least 0, infinity included, that never grows with the noise.
    epsilon : float
        What may be spent, positive and finite.
    low, high : float
        The least noise that is allowed and the most, both positive and finite.
    start : float, optional
        Where to look first: a guess, positive. By default the geometric mean of `low` and `high`.
    tolerance : float
        How far above the least noise the result may be, or its cost below epsilon, as a fraction:
        from 1e-13 to 0.1.

    Returns
    -------
    float
        A noise whose cost, as `cost` returns it, is at most epsilon; `low` where that is enough.

    Raises
    ------
    ValueError
        If no noise up to `high` is enough, or a parameter is out of range.

    Notes
    -----
    On logarithmic scales costs are nearly straight lines, so the root is found there, by Brent's
    method. It may lie on either side of the least noise, so the noise is then raised until its cost
    is at most epsilon. This holds even where the cost jumps or is not quite monotone.

    Examples
    --------
    >>> from dpnotes.accounting import compose_gaussian
    >>> sigma = calibrate(lambda sigma: compose_gaussian(sigma, 100, 1e-5), 1.0, 0.01, 1e6)
    >>> round(sigma, 3), float(compose_gaussian(sigma, 100, 1e-5)) <= 1.0
    (37.306, True)
    """
    if not callable(cost):
        raise TypeError(f"cost must be a function of the noise, got {type(cost).__name__}")
    epsilon, low = check_epsilon(epsilon), check_epsilon(low, "low")
    high = check_real("high", high, low=low, allowed="a finite number of at least low")
    least, most = math.log(low), math.log(high)
    start = (least + most) / 2 if start is None else math.log(check_epsilon(start, "start"))
    allowed = "a number from 1e-13 to 0.1"
    tolerance = check_real("tolerance", tolerance, low=1e-13, high=0.1, allowed=allowed)

    def noise_at(place: float) -> float:
        if place <= least:
            return low
        return high if place >= most else min(max(math.exp(place), low), high)

    @cache
    def excess(place: float) -> float:
        # A difference, because a quotient just above 1 could be rounded to 1.
        beyond = (float(cost(noise_at(place))) - epsilon) / epsilon
        if -tolerance <= beyond <= 0:
            return 0.0  # close enough, so that no search goes on
        # The middle of what is close enough is what the search aims at.
        return math.log1p(min(max(beyond, 1e-15 - 1), 1e300)) + tolerance / 2

    enough = too_little = min(max(start, least), most)
    reach, nudge = 1.0, 1e-6
    while (above := excess(enough)) > 0:
        if enough >= most:
            raise ValueError(
                f"epsilon must be large enough for noise of at most {high:g}, got {epsilon}"
            )
        too_little, enough = enough, min(enough + min(2 * above + nudge, reach), most)
        reach, nudge = 2 * reach, 2 * nudge
    while (below := excess(too_little)) <= 0:
        if below == 0 or too_little <= least:
            return noise_at(too_little)
        too_little, enough = max(too_little + max(2 * below - nudge, -reach), least), too_little
        reach, nudge = 2 * reach, 2 * nudge
    step = tolerance / 40
    place = optimize.brentq(excess, too_little, enough, xtol=step, maxiter=1000)
    while excess(place) > 0:
        place, step = min(place + step, enough), 2 * step
    return noise_at(place)
