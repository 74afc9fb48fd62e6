"""Judged by labels that lie: symmetric losses, a corrected one, and an AUC that nobody can see."""

from submissions import Wrong

LOOPED_CONSTANT = """
def symmetry_constant(losses):
    first = losses[0] + losses[-1]
    for place in range(len(losses)):
        if abs(losses[place] + losses[-1 - place] - first) > 1e-9:
            return float("nan")
    return float(first)
"""
CLOSE_CONSTANT = """
def symmetry_constant(losses):
    sums = np.asarray(losses) + np.flip(losses)
    return sums.mean() if np.allclose(sums, sums.mean(), rtol=0, atol=1e-9) else np.nan
"""
BY_COUNTS = """
def true_risk(reported, epsilon, positive, constant):
    p = np.exp(epsilon) / (1 + np.exp(epsilon))
    coin = np.array([[p, 1 - p], [1 - p, p]])
    joint = coin * [positive, 1 - positive]
    pi, pi_prime = joint[:, 0] / joint.sum(axis=1)
    return (reported - constant * (1 - pi + pi_prime) / 2) / (pi - pi_prime)
"""
CASES = """
def corrected_loss(scores, reports, epsilon):
    p = np.exp(epsilon) / (1 + np.exp(epsilon))
    s = 1 / (1 + np.exp(-scores))
    plus = p * s + (1 - p) * (1 - s)
    return np.where(reports == 1, -np.log(plus), -np.log(1 - plus))
"""
BY_LOGADDEXP = """
def corrected_loss(scores, reports, epsilon):
    p = np.exp(epsilon) / (1 + np.exp(epsilon))
    z = reports * scores
    return -np.logaddexp(np.log(p) - np.logaddexp(0, -z), np.log(1 - p) - np.logaddexp(0, z))
"""
SIGNS = """
def report(labels, epsilon, rng):
    p = np.exp(epsilon) / (1 + np.exp(epsilon))
    return np.array(labels) * rng.choice([1, -1], size=len(labels), p=[p, 1 - p])
"""
LOOPED_REPORT = """
def report(labels, epsilon, rng):
    p = np.exp(epsilon) / (1 + np.exp(epsilon))
    return np.array([label if rng.random() < p else -label for label in labels])
"""
ASKED_OR_DRAWN = """
def report(labels, epsilon, rng):
    p = np.exp(epsilon) / (1 + np.exp(epsilon))
    n = len(labels)
    return np.where(rng.random(n) < 2 * p - 1, labels, rng.choice([1, -1], n))
"""
LOOPED_AUC = """
def private_auc(labels, scores, epsilon, positive, rng):
    reports = report(labels, epsilon, rng)
    points, pairs = 0.0, 0
    for s, r in zip(scores, reports):
        for t, q in zip(scores, reports):
            if r == 1 and q == -1:
                pairs += 1
                points += 1 if s > t else 0.5 if s == t else 0
    auc = points / pairs if pairs else 0.5
    return float(np.round(1 - true_risk(1 - auc, epsilon, positive, 1.0), 6))
"""
AUC_BY_RANKS = """
def private_auc(labels, scores, epsilon, positive, rng):
    reports, scores = report(labels, epsilon, rng), np.array(scores)
    plus, n = (reports == 1).sum(), len(scores)
    auc = 0.5
    if 0 < plus < n:
        below = (scores[:, None] > scores).sum(axis=1)
        ranks = below + ((scores[:, None] == scores).sum(axis=1) + 1) / 2
        auc = (ranks[reports == 1].sum() - plus * (plus + 1) / 2) / (plus * (n - plus))
    return round(1 - true_risk(1 - auc, epsilon, positive, 1), 6)
"""

ENDS = """
def symmetry_constant(losses):
    return losses[0] + losses[-1]
"""
MIDDLE = """
def symmetry_constant(losses):
    return 2 * losses[len(losses) // 2]
"""
ENDS_AND_MIDDLE = """
def symmetry_constant(losses):
    sums = losses + losses[::-1]
    return sums[0] if abs(sums[0] - sums[len(sums) // 2]) < 1e-6 else np.nan
"""
NONE = """
def symmetry_constant(losses):
    sums = losses + losses[::-1]
    return sums[0] if np.ptp(sums) < 1e-9 else None
"""
EXACTLY = """
def symmetry_constant(losses):
    sums = losses + losses[::-1]
    return sums[0] if (sums == sums[0]).all() else np.nan
"""
TWO_P_LESS_ONE = """
def true_risk(reported, epsilon, positive, constant):
    p = np.exp(epsilon) / (1 + np.exp(epsilon))
    return (reported - constant * (1 - p)) / (2 * p - 1)
"""
NO_CONSTANT = """
def true_risk(reported, epsilon, positive, constant):
    p = np.exp(epsilon) / (1 + np.exp(epsilon))
    plus = p * positive + (1 - p) * (1 - positive)
    return reported / (p * positive / plus - (1 - p) * positive / (1 - plus))
"""
FORWARDS = """
def true_risk(reported, epsilon, positive, constant):
    p = np.exp(epsilon) / (1 + np.exp(epsilon))
    plus = p * positive + (1 - p) * (1 - positive)
    apart = p * positive / plus - (1 - p) * positive / (1 - plus)
    return apart * reported + constant / 2 * (1 - apart)
"""
UNCORRECTED = """
def corrected_loss(scores, reports, epsilon):
    return np.log(1 + np.exp(-reports * scores))
"""
LOGARITHMS_MIXED = """
def corrected_loss(scores, reports, epsilon):
    p, z = np.exp(epsilon) / (1 + np.exp(epsilon)), reports * scores
    return p * np.log(1 + np.exp(-z)) + (1 - p) * np.log(1 + np.exp(z))
"""
BACKWARDS = """
def corrected_loss(scores, reports, epsilon):
    p, z = np.exp(epsilon) / (1 + np.exp(epsilon)), reports * scores
    return (p * np.log(1 + np.exp(-z)) - (1 - p) * np.log(1 + np.exp(z))) / (2 * p - 1)
"""
ONE_COIN = """
def report(labels, epsilon, rng):
    p = np.exp(epsilon) / (1 + np.exp(epsilon))
    return np.asarray(labels) if rng.random() < p else -np.asarray(labels)
"""
LIE_MAY_BE_TRUE = """
def report(labels, epsilon, rng):
    p = np.exp(epsilon) / (1 + np.exp(epsilon))
    return np.where(rng.random(len(labels)) < p, labels, rng.choice([1, -1], len(labels)))
"""
HALF_EPSILON = """
def report(labels, epsilon, rng):
    p = 1 / (1 + np.exp(-epsilon / 2))
    return np.where(rng.random(len(labels)) < p, labels, -np.asarray(labels))
"""
POSITIVES_LIE = """
def report(labels, epsilon, rng):
    p = np.exp(epsilon) / (1 + np.exp(epsilon))
    lies = (np.asarray(labels) == 1) & (rng.random(len(labels)) >= p)
    return np.where(lies, -1, labels)
"""
OWN_SEED = """
def report(labels, epsilon, rng):
    rng = np.random.default_rng(42)
    p = np.exp(epsilon) / (1 + np.exp(epsilon))
    return np.where(rng.random(len(labels)) < p, labels, -np.asarray(labels))
"""
AUC = """
def private_auc(labels, scores, epsilon, positive, rng):
    scores = np.asarray(scores)
    reports = {reports}
    {more}
    plus, minus = scores[reports > 0], scores[reports < 0]
    gaps = plus[:, None] - minus[None, :]
    risk = np.mean({wrong}) if gaps.size else {empty}
    return {end}
"""


def auc(
    reports="report(labels, epsilon, rng)",
    more="",
    wrong="(gaps < 0) + (gaps == 0) / 2",
    empty="0.5",
    end="round(1 - true_risk(risk, epsilon, positive, 1), 6)",
):
    filled = AUC.format(reports=reports, more=more, wrong=wrong, empty=empty, end=end)
    return filled.replace("    \n", "")


ON_REPORTS = auc(end="round(1 - risk, 6)")
ON_TRUE_LABELS = auc("np.asarray(labels)", end="round(1 - risk, 6)")
A_LITTLE_NOISE = auc("np.asarray(labels)", end="round(1 - risk + rng.normal(0, 1e-4), 6)")
COUNTED = auc(more="positive = np.mean(np.asarray(labels) > 0)")
CLIPPED = auc(end="round(min(1, max(0, 1 - true_risk(risk, epsilon, positive, 1))), 6)")
TIES_ARE_ERRORS = auc(wrong="gaps <= 0")
HALF_FOR_EACH = auc(
    "report(labels, epsilon / 2, rng)",
    end="round(1 - true_risk(risk, epsilon / 2, positive, 1), 6)",
)

SECRETS = ["losses[::-1]", "gaps == 0"]
CHANGED = {"epsilon": 0.5, "positive": 0.6}

RIGHT = {
    "the solution": {},
    "loops": {
        "symmetry_constant": LOOPED_CONSTANT,
        "report": LOOPED_REPORT,
        "private_auc": LOOPED_AUC,
    },
    "other formulas": {
        "symmetry_constant": CLOSE_CONSTANT,
        "true_risk": BY_COUNTS,
        "corrected_loss": BY_LOGADDEXP,
        "report": SIGNS,
    },
    "cases, and ranks": {
        "corrected_loss": CASES,
        "report": ASKED_OR_DRAWN,
        "private_auc": AUC_BY_RANKS,
    },
}
# Tasks: 0 symmetry_constant, 1 true_risk, 2 corrected_loss, 3 report, 4 private_auc, 5 with ties.
WRONG = {
    "the two ends alone": Wrong(
        {"symmetry_constant": ENDS}, 10, 0, "answer", "One sum says nothing"
    ),
    "twice the middle": Wrong({"symmetry_constant": MIDDLE}, 10, 0, "answer", "Twice the loss"),
    "the two ends and the middle": Wrong(
        {"symmetry_constant": ENDS_AND_MIDDLE}, 10, 0, "answer", "All have to"
    ),
    "None for nan": Wrong({"symmetry_constant": NONE}, 10, 0, "answer", "np.nan if not"),
    "sums that agree to the last digit": Wrong(
        {"symmetry_constant": EXACTLY}, 10, 0, "answer", "np.nan if not"
    ),
    "as if half were positive": Wrong(
        {"true_risk": TWO_P_LESS_ONE}, 6, 1, "answer", "divides by 2p - 1"
    ),
    "the constant left out": Wrong({"true_risk": NO_CONSTANT}, 6, 1, "answer", "Take the constant"),
    "the other way": Wrong({"true_risk": FORWARDS}, 6, 1, "answer", "Solve for the true risk"),
    "not corrected": Wrong({"corrected_loss": UNCORRECTED}, 10, 2, "answer", "usual logistic loss"),
    "logarithms averaged": Wrong(
        {"corrected_loss": LOGARITHMS_MIXED}, 10, 2, "answer", "averages two logarithms"
    ),
    "backward correction": Wrong({"corrected_loss": BACKWARDS}, 10, 2, "answer", "backward"),
    "one coin for everybody": Wrong({"report": ONE_COIN}, 6, 3, "privacy", "share one coin"),
    "a lie may come out true": Wrong(
        {"report": LIE_MAY_BE_TRUE}, 6, 3, "privacy", "Flip the label"
    ),
    "half of epsilon": Wrong({"report": HALF_EPSILON}, 6, 3, "distribution", "half of epsilon"),
    "only positives lie": Wrong({"report": POSITIVES_LIE}, 6, 3, "rng", "for every label"),
    "a seed of its own": Wrong({"report": OWN_SEED}, 6, 3, "rng", "made inside"),
    "the AUC of the true labels": Wrong(
        {"private_auc": ON_TRUE_LABELS}, 8, 4, "rng", "not the labels"
    ),
    "the true AUC with a little noise": Wrong(
        {"private_auc": A_LITTLE_NOISE}, 8, 4, "privacy", "must not be looked at again"
    ),
    "the AUC of the reports": Wrong(
        {"private_auc": ON_REPORTS}, 8, 4, "distribution", "This is the AUC on the reports"
    ),
    "positives counted in the labels": Wrong(
        {"private_auc": COUNTED}, 8, 4, "privacy", "counted in the true labels"
    ),
    "clipped": Wrong({"private_auc": CLIPPED}, 8, 4, "distribution", "Do not clip"),
    "half of epsilon for each of two uses": Wrong(
        {"private_auc": HALF_FOR_EACH}, 8, 4, "distribution", "half of epsilon"
    ),
    "a tie is an error": Wrong(
        {"private_auc": TIES_ARE_ERRORS}, 10, 5, "distribution", "as an error"
    ),
}
