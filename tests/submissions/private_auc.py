"""A report card: the AUC and the share that is found, with Cauchy noise on a smooth sensitivity."""

from submissions import Wrong

AUC_LOOP = """
def auc(records):
    won = pairs = 0
    for label, score in records:
        for other, beaten in records:
            if label == 1 and other == 0:
                pairs += 1
                won += 1 if score > beaten else 0.5 if score == beaten else 0
    return won / pairs if pairs else 0.5
"""
ENDS = """
def interval(released, at_least, epsilon, beta, confidence):
    t = 1 / np.tan(np.pi * (1 - confidence) / 2)
    s = noise_scale(at_least, epsilon, beta)
    return [min(max(x, 0), 1) for x in (released - t * s, released + t * s)]
"""

TIES_LOST = """
def auc(records):
    ill = [s for y, s in records if y == 1]
    well = [s for y, s in records if y == 0]
    if not ill or not well:
        return 0.5
    return sum(a > b for a in ill for b in well) / (len(ill) * len(well))
"""
LOCAL = """
def noise_scale(size, epsilon, beta):
    equal = np.sinh(epsilon / 2)
    unequal = np.exp(beta / 2) * np.sqrt(
        np.sinh((epsilon + beta) / 2) * np.sinh((epsilon - beta) / 2)
    )
    return 1 / max(size, 1) / (2 * min(equal, unequal))
"""
ONE_IN_N = """
def release_auc(records, epsilon, beta, rng):
    return auc(records) + rng.laplace(scale=1 / (epsilon * len(records)))
"""
NO_NOISE_IF_MISSING = """
def release_auc(records, epsilon, beta, rng):
    n = sum(label for label, _ in records)
    smaller = min(n, len(records) - n)
    if smaller == 0:
        return 0.5
    return auc(records) + noise_scale(smaller, epsilon, beta) * rng.standard_cauchy()
"""
BY_THE_SMALLER = """
def release_found(records, epsilon, beta, rng):
    scores = [score for label, score in records if label == 1]
    share = sum(score >= 0.5 for score in scores) / len(scores) if scores else 0.5
    smaller = min(len(scores), len(records) - len(scores))
    return share + noise_scale(smaller, epsilon, beta) * rng.standard_cauchy()
"""
UNDEFINED = """
def release_found(records, epsilon, beta, rng):
    scores = [score for label, score in records if label == 1]
    share = sum(score >= 0.5 for score in scores) / len(scores)
    return share + noise_scale(len(scores), epsilon, beta) * rng.standard_cauchy()
"""
GAUSSIAN_REACH = """
def interval(released, at_least, epsilon, beta, confidence):
    from scipy import stats
    reach = stats.norm.ppf((1 + confidence) / 2) * noise_scale(at_least, epsilon, beta)
    return np.clip([released - reach, released + reach], 0, 1)
"""

SECRETS = ["ahead", "np.sinh(", "np.tan(np.pi"]
CHANGED = {"epsilon": 0.5, "beta": 0.1}

RIGHT = {
    "the solution": {},
    "loops over all pairs": {"auc": AUC_LOOP, "interval": ENDS},
}
# Tasks: 0 auc, 1 noise_scale, 2 release_auc (both classes), 3 release_auc (a class missing),
# 4 release_found, 5 interval.
WRONG = {
    "ties that count nothing": Wrong({"auc": TIES_LOST}, 8, 0, "answer", "half a pair"),
    "the local sensitivity": Wrong({"noise_scale": LOCAL}, 4, 1, "answer", "exp(-beta (size - 1))"),
    "one in N": Wrong({"release_auc": ONE_IN_N}, 8, 2, "privacy", "all records"),
    "no noise without a pair": Wrong(
        {"release_auc": NO_NOISE_IF_MISSING}, 10, 3, "rng", "a class is missing"
    ),
    "the smaller class for the share of the ill": Wrong(
        {"release_found": BY_THE_SMALLER}, 10, 4, "distribution", "number of the ill"
    ),
    "a division by zero": Wrong({"release_found": UNDEFINED}, 10, 4, "run", "ZeroDivision"),
    "the reach of Gaussian noise": Wrong(
        {"interval": GAUSSIAN_REACH}, 10, 5, "answer", "much further"
    ),
}
