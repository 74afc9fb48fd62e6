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
AUC_BY_RANKS = """
def auc(records):
    labels, scores = (np.array(column) for column in zip(*records))
    n, m = (labels == 1).sum(), (labels == 0).sum()
    if n * m == 0:
        return 0.5
    ranks = [(scores < s).sum() + ((scores == s).sum() + 1) / 2 for s in scores[labels == 1]]
    return (np.sum(ranks) - n * (n + 1) / 2) / (n * m)
"""
SCALE_BY_SEARCH = """
def noise_scale(size, epsilon, beta):
    smooth = max(np.exp(-beta * r) / max(size - r, 1) for r in range(size + 1))
    equal = 1 / (2 * np.sinh(epsilon / 2))
    wider = np.exp(-beta / 2) / np.sqrt(2 * (np.cosh(epsilon) - np.cosh(beta)))
    return smooth * max(equal, wider)
"""
QUOTIENT = """
def release_auc(records, epsilon, beta, rng):
    labels = [label for label, _ in records]
    scale = noise_scale(min(labels.count(0), labels.count(1)), epsilon, beta)
    return auc(records) + scale * rng.normal() / rng.normal()
"""
TANGENT = """
def release_found(records, epsilon, beta, rng):
    found = [score >= 0.5 for label, score in records if label]
    share = np.mean(found) if found else 1 / 2
    angle = np.pi * (rng.random() - 0.5)
    return share + noise_scale(len(found), epsilon, beta) * np.tan(angle)
"""
STUDENT_T = """
def release_auc(records, epsilon, beta, rng):
    n = np.sum([label == 1 for label, _ in records])
    scale = noise_scale(int(min(n, len(records) - n)), epsilon, beta)
    return auc(records) + scale * rng.standard_t(1)
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
NOT_A_NUMBER_IF_MISSING = """
def auc(records):
    ill = np.array([s for y, s in records if y == 1])
    well = np.array([s for y, s in records if y == 0])
    ahead = ill[:, None] - well
    return float(np.sum((ahead > 0) + 0.5 * (ahead == 0)) / np.float64(ahead.size))
"""
LOCAL = """
def noise_scale(size, epsilon, beta):
    equal = np.sinh(epsilon / 2)
    unequal = np.exp(beta / 2) * np.sqrt(
        np.sinh((epsilon + beta) / 2) * np.sinh((epsilon - beta) / 2)
    )
    return 1 / max(size, 1) / (2 * min(equal, unequal))
"""
NO_FACTOR = """
def noise_scale(size, epsilon, beta):
    return max(1 / size, np.exp(-beta * (size - 1))) if size else 1.0
"""
EQUAL_WIDTHS = """
def noise_scale(size, epsilon, beta):
    smooth = max(1 / size, np.exp(-beta * (size - 1))) if size else 1.0
    return smooth / (2 * np.sinh(epsilon / 2))
"""
ONE_IN_N = """
def release_auc(records, epsilon, beta, rng):
    return auc(records) + rng.laplace(scale=1 / (epsilon * len(records)))
"""
GLOBAL_NOISE = """
def release_auc(records, epsilon, beta, rng):
    return auc(records) + noise_scale(1, epsilon, beta) * rng.standard_cauchy()
"""
LAPLACE = """
def release_auc(records, epsilon, beta, rng):
    n = sum(label for label, _ in records)
    scale = noise_scale(min(n, len(records) - n), epsilon, beta)
    return auc(records) + rng.laplace(0, scale)
"""
LARGER_CLASS = """
def release_auc(records, epsilon, beta, rng):
    n = sum(label for label, _ in records)
    scale = noise_scale(max(n, len(records) - n), epsilon, beta)
    return auc(records) + scale * rng.standard_cauchy()
"""
ILL_ALONE = """
def release_auc(records, epsilon, beta, rng):
    scale = noise_scale(sum(label for label, _ in records), epsilon, beta)
    return auc(records) + scale * rng.standard_cauchy()
"""
CLIPPED = """
def release_auc(records, epsilon, beta, rng):
    n = sum(label for label, _ in records)
    scale = noise_scale(min(n, len(records) - n), epsilon, beta)
    return float(np.clip(auc(records) + scale * rng.standard_cauchy(), 0, 1))
"""
UNTIL_INSIDE = """
def release_auc(records, epsilon, beta, rng):
    n = sum(label for label, _ in records)
    scale = noise_scale(min(n, len(records) - n), epsilon, beta)
    while True:
        released = auc(records) + scale * rng.standard_cauchy()
        if 0 <= released <= 1:
            return released
"""
NO_NOISE_IF_MISSING = """
def release_auc(records, epsilon, beta, rng):
    n = sum(label for label, _ in records)
    smaller = min(n, len(records) - n)
    if smaller == 0:
        return 0.5
    return auc(records) + noise_scale(smaller, epsilon, beta) * rng.standard_cauchy()
"""
HALF_EPSILON = """
def release_auc(records, epsilon, beta, rng):
    n = sum(label for label, _ in records)
    scale = noise_scale(min(n, len(records) - n), epsilon / 2, beta)
    return auc(records) + scale * rng.standard_cauchy()
"""
TRUTH = """
def release_auc(records, epsilon, beta, rng):
    return auc(records)
"""
TINY_NOISE = """
def release_auc(records, epsilon, beta, rng):
    return auc(records) + rng.normal(0, 1e-3)
"""
BY_THE_SMALLER = """
def release_found(records, epsilon, beta, rng):
    scores = [score for label, score in records if label == 1]
    share = sum(score >= 0.5 for score in scores) / len(scores) if scores else 0.5
    smaller = min(len(scores), len(records) - len(scores))
    return share + noise_scale(smaller, epsilon, beta) * rng.standard_cauchy()
"""
BY_ALL = """
def release_found(records, epsilon, beta, rng):
    scores = [score for label, score in records if label == 1]
    share = sum(score >= 0.5 for score in scores) / len(scores) if scores else 0.5
    return share + noise_scale(len(records), epsilon, beta) * rng.standard_cauchy()
"""
NO_NOISE_FOR_MANY = """
def release_found(records, epsilon, beta, rng):
    scores = [score for label, score in records if label == 1]
    share = sum(score >= 0.5 for score in scores) / len(scores) if scores else 0.5
    if len(scores) > 30:
        return share + 1e-6 * rng.standard_cauchy()
    return share + noise_scale(len(scores), epsilon, beta) * rng.standard_cauchy()
"""
DIVIDES_BY_ZERO = """
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
ONE_SIDE = """
def interval(released, at_least, epsilon, beta, confidence):
    reach = np.tan(np.pi * (confidence - 0.5)) * noise_scale(at_least, epsilon, beta)
    return np.clip([released - reach, released + reach], 0, 1)
"""

SECRETS = ["ahead", "np.sinh(", "np.tan(np.pi"]
CHANGED = {"epsilon": 0.5, "beta": 0.1}

RIGHT = {
    "the solution": {},
    "loops over all pairs": {"auc": AUC_LOOP, "interval": ENDS},
    "ranks": {"auc": AUC_BY_RANKS, "release_auc": STUDENT_T},
    "the definition of the smooth sensitivity": {"noise_scale": SCALE_BY_SEARCH},
    "a quotient of normal numbers": {"release_auc": QUOTIENT, "release_found": TANGENT},
}
# Tasks: 0 auc, 1 noise_scale, 2 release_auc (both classes), 3 release_auc (a class missing),
# 4 release_found, 5 interval.
WRONG = {
    "ties that count nothing": Wrong({"auc": TIES_LOST}, 8, 0, "answer", "half a pair"),
    "not a number without a pair": Wrong(
        {"auc": NOT_A_NUMBER_IF_MISSING}, 8, 3, "shape", "½ with noise"
    ),
    "the local sensitivity": Wrong({"noise_scale": LOCAL}, 4, 1, "answer", "exp(-beta (size - 1))"),
    "no factor": Wrong({"noise_scale": NO_FACTOR}, 8, 1, "answer", "by the factor c"),
    "a factor for equal widths": Wrong({"noise_scale": EQUAL_WIDTHS}, 8, 1, "answer", "beta is"),
    "one in N": Wrong({"release_auc": ONE_IN_N}, 8, 2, "privacy", "all records"),
    "noise for a sensitivity of one": Wrong(
        {"release_auc": GLOBAL_NOISE}, 8, 2, "distribution", "far too much"
    ),
    "Laplace noise": Wrong({"release_auc": LAPLACE}, 8, 2, "distribution", "too thin"),
    "the larger class": Wrong({"release_auc": LARGER_CLASS}, 8, 2, "privacy", "larger class"),
    "the ill alone": Wrong({"release_auc": ILL_ALONE}, 8, 2, "distribution", "number of the ill"),
    "the ill alone, of whom there may be none": Wrong(
        {"release_auc": ILL_ALONE}, 8, 3, "privacy", "number of the ill"
    ),
    "clipped": Wrong({"release_auc": CLIPPED}, 8, 2, "distribution", "as it is"),
    "drawn until it is inside": Wrong(
        {"release_auc": UNTIL_INSIDE}, 8, 2, "distribution", "draw once"
    ),
    "no noise without a pair": Wrong(
        {"release_auc": NO_NOISE_IF_MISSING}, 10, 3, "rng", "a class is missing"
    ),
    "half of epsilon": Wrong(
        {"release_auc": HALF_EPSILON}, 8, 2, "distribution", "half of epsilon"
    ),
    "the truth": Wrong({"release_auc": TRUTH}, 8, 2, "rng", "whatever the records are"),
    "tiny noise": Wrong({"release_auc": TINY_NOISE}, 8, 2, "privacy", "much too small"),
    "the smaller class for the share of the ill": Wrong(
        {"release_found": BY_THE_SMALLER}, 10, 4, "distribution", "number of the ill"
    ),
    "all records for the share of the ill": Wrong(
        {"release_found": BY_ALL}, 10, 4, "privacy", "number of all records"
    ),
    "no noise for many": Wrong({"release_found": NO_NOISE_FOR_MANY}, 10, 4, "privacy", "too small"),
    "a division by zero": Wrong({"release_found": DIVIDES_BY_ZERO}, 10, 4, "run", "ZeroDivision"),
    "the reach of Gaussian noise": Wrong(
        {"interval": GAUSSIAN_REACH}, 10, 5, "answer", "much further"
    ),
    "one side": Wrong({"interval": ONE_SIDE}, 10, 5, "answer", "shared by two"),
}
