"""privateAB: the reports of its client, for tests in the local model.

Every two categories are neighbours.
"""

import functools

from audited import Audits

audits = Audits(
    "privateAB",
    noise="in 32-bit floats (`torch.distributions`)",
    epsilon=1.0,
    unit="any two categories",
    quote="Privacy parameter: The parameter controlling the level of local differential privacy.",
    where="the README of the package, on client.release_private",
    pair=(0, 1),
    trials=3_000,
)


@functools.cache
def _client():
    from privateAB.client import client

    return client()


def _report(category, mechanism, categories):
    import torch

    data, device = torch.tensor([category]), torch.device("cpu")
    found = _client().release_private(mechanism, data, categories, 1.0, device)
    return [round(number, 6) for number in found.flatten().tolist()]


@audits.add("client.release_private, genrr")
def genrr(category):
    return _report(category, "genrr", 4)


@audits.add("client.release_private, bitflip")
def bitflip(category):
    return _report(category, "bitflip", 4)


@audits.add("client.release_private, lapu")
def lapu(category):
    return _report(category, "lapu", 4)


@audits.add("client.release_private, disclapu", tried="the categories 0 and 1 of four")
def disclapu_of_four(category):
    return _report(category, "disclapu", 4)


@audits.add(
    "client.release_private, disclapu",
    tried="the categories 0 and 1 of two",
    cause="Whole-number noise is added to the square root of the number of categories "
    "(`disclapu.privatize`). Unless that number is a square, the place of the fraction in the "
    "report is the category.",
)
def disclapu_of_two(category):
    return [number % 1 > 0 for number in _report(category, "disclapu", 2)]
