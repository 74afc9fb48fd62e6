"""JAX Privacy: a sum of clipped records with the noise that its calibration finds.

The documentation of `clipped_fun` gives its sensitivity for "add/remove or zero-out": so a record
is zeroed out, which keeps the shape of the array.
"""

import functools

from audited import Audits

audits = Audits(
    "jax-privacy",
    noise="in 32-bit floats (`jax.random.normal`)",
    epsilon=1.0,
    delta=0.01,
    unit="one record zeroed out",
    quote="Computes the noise multiplier to achieve `target_epsilon`.",
    where="the docstring of jax_privacy.accounting.calibrate.calibrate_noise_multiplier",
    pair=([9.0, 0.0], [9.0, 9.0]),
    trials=60_000,
)


@functools.cache
def _multiplier(kind, expected):
    from jax_privacy.accounting import accountants, analysis, calibrate

    config = getattr(accountants, kind)()
    return calibrate.calibrate_noise_multiplier(
        target_epsilon=1.0,
        target_delta=0.01,
        accountant=analysis.DpsgdTrainingAccountant(dp_accountant_config=config),
        batch_sizes=expected,
        num_updates=1,
        num_samples=2,
    )


@functools.cache
def _release(kind, expected):
    import dp_accounting
    import jax
    from jax_privacy.clipping import clipped_fun
    from jax_privacy.noise_addition import gaussian_privatizer

    clipped_sum = clipped_fun(jax.numpy.sum, l2_clip_norm=1.0)
    most = clipped_sum.sensitivity(dp_accounting.NeighboringRelation.ADD_OR_REMOVE_ONE)
    scale = float(_multiplier(kind, expected)) * most

    def noisy(records, key):
        privatizer = gaussian_privatizer(stddev=scale, prng_key=key)
        state = privatizer.init(jax.numpy.zeros(()))
        return privatizer.update(clipped_sum(records), state)[0]

    return jax.jit(noisy)


def _noisy_sum(records, rng, kind, expected=2):
    import jax

    key = jax.random.key(int(rng.integers(2**31)))
    return float(_release(kind, expected)(jax.numpy.array(records), key))


@audits.add("clipped_fun and gaussian_privatizer, all records, PLD")
def all_records_pld(records, rng):
    return _noisy_sum(records, rng, "PldAccountantConfig")


@audits.add("clipped_fun and gaussian_privatizer, all records, RDP")
def all_records_rdp(records, rng):
    return _noisy_sum(records, rng, "RdpAccountantConfig")


@audits.add("CyclicPoissonSampling of half, PLD")
def poisson_sample_pld(records, rng):
    import numpy as np
    from jax_privacy.batch_selection import CyclicPoissonSampling

    strategy = CyclicPoissonSampling(sampling_prob=0.5, iterations=1)
    [batch] = strategy.batch_iterator(2, rng=rng)
    kept = np.zeros(2)
    kept[batch] = 1.0  # a record that is left out adds nothing to the sum
    return _noisy_sum(kept * np.array(records), rng, "PldAccountantConfig", 1)
