"""Opacus: one step of its optimizer on a model with one weight.

The weight starts at zero and its gradient is the record, so that the step shows the noisy sum of
the clipped records. The noise is the one that `get_noise_multiplier` finds for the epsilon. Opacus
privatizes what is in a batch, and its own comments speak of "add/remove DP".
"""

import functools

from audited import Audits

SIGMA = (
    "The noise level sigma to ensure privacy budget of (target_epsilon, target_delta)",
    "the docstring of opacus.accountants.utils.get_noise_multiplier",
)

audits = Audits(
    "opacus",
    noise="in 32-bit floats (`torch.normal`)",
    noise_report="[issue 616](https://github.com/meta-pytorch/opacus/issues/616): `secure_mode` "
    "resists one attack, and not another",
    epsilon=1.0,
    delta=0.01,
    unit="one record added",
    quote=SIGMA[0],
    where=SIGMA[1],
    pair=([9.0], [9.0, 9.0]),
    trials=8_000,
)


@functools.cache
def _sigma(accountant, rate=1.0):
    from opacus.accountants.utils import get_noise_multiplier

    return get_noise_multiplier(
        target_epsilon=1.0, target_delta=0.01, sample_rate=rate, steps=1, accountant=accountant
    )


@functools.cache
def _optimizer(sigma):
    """Return a model with one weight and its optimizer, which keep nothing from step to step."""
    import torch
    from opacus.grad_sample import GradSampleModule
    from opacus.optimizers import DPOptimizer

    layer = torch.nn.Linear(1, 1, bias=False)
    model = GradSampleModule(layer)
    optimizer = DPOptimizer(
        torch.optim.SGD(model.parameters(), lr=1.0),
        noise_multiplier=sigma,
        max_grad_norm=1.0,
        expected_batch_size=1,
    )
    return layer, model, optimizer


def _stepped(records, sigma, rate=1.0):
    import torch
    from opacus.utils.uniform_sampler import UniformWithReplacementSampler

    layer, model, optimizer = _optimizer(sigma)
    torch.nn.init.zeros_(layer.weight)
    optimizer.zero_grad()
    values = torch.tensor(records).reshape(-1, 1)
    [batch] = UniformWithReplacementSampler(num_samples=len(records), sample_rate=rate, steps=1)
    model(values[batch]).sum().backward()
    optimizer.step()
    return layer.weight.item()


@audits.add("DPOptimizer.step, all records, RDP")
def all_records_rdp(records):
    return _stepped(records, _sigma("rdp"))


@audits.add("DPOptimizer.step, all records, PRV")
def all_records_prv(records):
    return _stepped(records, _sigma("prv"))


@audits.add("DPOptimizer.step, Poisson sample of half, PRV")
def poisson_sample_prv(records):
    return _stepped(records, _sigma("prv", 0.5), 0.5)


@audits.add(
    "optimizers.optimizer._generate_noise",
    quote="Generates noise according to a Gaussian distribution with mean 0",
    where="the docstring of opacus.optimizers.optimizer._generate_noise",
    unit="two values that differ by the sensitivity",
    pair=(0.0, 1.0),
    advice="If `secure_mode` is enabled, the generated noise is also secure against the floating "
    "point representation attacks",
)
def noise(value):
    import torch
    from opacus.optimizers.optimizer import _generate_noise

    return value + _generate_noise(_sigma("prv"), torch.zeros(1)).item()
