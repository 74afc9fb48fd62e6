"""Judged by labels that lie: symmetric losses, a corrected one, and an AUC that nobody can see."""

from submissions import Wrong

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

ENDS = """
def symmetry_constant(losses):
    return losses[0] + losses[-1]
"""
TWO_P_LESS_ONE = """
def true_risk(reported, epsilon, positive, constant):
    p = np.exp(epsilon) / (1 + np.exp(epsilon))
    return (reported - constant * (1 - p)) / (2 * p - 1)
"""
UNCORRECTED = """
def corrected_loss(scores, reports, epsilon):
    return np.log(1 + np.exp(-reports * scores))
"""
ONE_COIN = """
def report(labels, epsilon, rng):
    p = np.exp(epsilon) / (1 + np.exp(epsilon))
    return np.asarray(labels) if rng.random() < p else -np.asarray(labels)
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
TIES_ARE_ERRORS = auc(wrong="gaps <= 0")

SECRETS = ["losses[::-1]", "gaps == 0"]
CHANGED = {"epsilon": 0.5, "positive": 0.6}

RIGHT = {
    "the solution": {},
    "other formulas": {
        "symmetry_constant": CLOSE_CONSTANT,
        "true_risk": BY_COUNTS,
        "corrected_loss": BY_LOGADDEXP,
        "report": SIGNS,
    },
}
# Tasks: 0 symmetry_constant, 1 true_risk, 2 corrected_loss, 3 report, 4 private_auc, 5 with ties.
WRONG = {
    "the two ends alone": Wrong(
        {"symmetry_constant": ENDS}, 10, 0, "answer", "One sum says nothing"
    ),
    "as if half were positive": Wrong(
        {"true_risk": TWO_P_LESS_ONE}, 6, 1, "answer", "divides by 2p - 1"
    ),
    "not corrected": Wrong({"corrected_loss": UNCORRECTED}, 10, 2, "answer", "usual logistic loss"),
    "one coin for everybody": Wrong({"report": ONE_COIN}, 6, 3, "privacy", "share one coin"),
    "the AUC of the reports": Wrong(
        {"private_auc": ON_REPORTS}, 8, 4, "distribution", "This is the AUC on the reports"
    ),
    "a tie is an error": Wrong(
        {"private_auc": TIES_ARE_ERRORS}, 10, 5, "distribution", "as an error"
    ),
}
