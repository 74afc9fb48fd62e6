"""ELUN: train a model for the noise that privacy will add to its weights.

Output perturbation fits a model, then adds noise to its weights (Chaudhuri, Monteleoni and Sarwate,
2011). ELUN, the expected loss under noise, fits the weights that are best on average *after* the
noise. Both are private for the same reason: an average of convex, rho-Lipschitz losses is convex
and rho-Lipschitz, so replacing one record moves the optimum by a bounded distance,

    ||w(D) - w(D')||_2 <= (2 / lambda) (rho / n + kappa),

with rho the largest norm of a row, lambda the regularization and kappa the gradient norm at which
the solver stops. Noise with density proportional to exp(-||z||_2 / b), where b is that bound over
epsilon, is epsilon-differentially private. The logistic loss has a smaller bound, about half of
this one under large noise (`logistic_sensitivity`).

`noise` and `loss` need numpy and scipy only. The estimator also needs scikit-learn, which comes
with ``pip install dpnotes[sklearn]``.
"""

from typing import NoReturn

from dpnotes.elun.loss import (
    averaged_logistic_loss,
    clip_rows,
    expected_logistic_loss,
    logistic_sensitivity,
    minimize_loss,
    sensitivity,
)
from dpnotes.elun.noise import (
    coordinate_laplace_noise,
    l2_laplace_noise,
    log_density,
    projected_noise,
    uniform_mixture,
)

__all__ = [
    "averaged_logistic_loss",
    "clip_rows",
    "coordinate_laplace_noise",
    "expected_logistic_loss",
    "l2_laplace_noise",
    "log_density",
    "logistic_sensitivity",
    "minimize_loss",
    "projected_noise",
    "sensitivity",
    "uniform_mixture",
]

try:
    from dpnotes.elun.estimator import Guarantee, PrivateLogisticRegression, fit_many
except ModuleNotFoundError as missing:
    if missing.name.partition(".")[0] != "sklearn":
        raise

    def __getattr__(name: str) -> NoReturn:
        if name in ("Guarantee", "PrivateLogisticRegression", "fit_many"):
            raise ModuleNotFoundError(
                f"{name} needs scikit-learn: pip install dpnotes[sklearn]", name="sklearn"
            )
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

else:
    __all__ += ["Guarantee", "PrivateLogisticRegression", "fit_many"]
