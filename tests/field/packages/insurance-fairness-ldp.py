"""insurance-fairness-ldp: randomized response for a sensitive attribute.

Its docstring states the definition of the local model: any two true values are neighbours.
"""

from audited import Audits

audits = Audits(
    "insurance-fairness-ldp",
    noise="none: coins alone",
    epsilon=1.0,
    unit="any two true values",
    quote="For any two true values d, d' and any reported value s:: "
    "P(S=s | D=d) / P(S=s | D=d') <= exp(epsilon)",
    where="the docstring of insurance_fairness_ldp.mechanisms",
    advice="Privacy guarantee is architectural, not just algorithmic.",
)


@audits.add("KaryRandomisedResponse", pair=(["A"], ["B"]))
def categories_of_one_length(values):
    from insurance_fairness_ldp import KaryRandomisedResponse

    return str(KaryRandomisedResponse(1.0, ["A", "B"]).privatise(values)[0])


@audits.add(
    "KaryRandomisedResponse",
    pair=(["no"], ["yes"]),
    cause="The reports have the dtype of the true values (`result = s_arr.copy()` in `privatise`), "
    "which cuts a longer category off: “yes” is never reported by somebody whose truth is “no”.",
)
def categories_of_two_lengths(values):
    from insurance_fairness_ldp import KaryRandomisedResponse

    return str(KaryRandomisedResponse(1.0, ["no", "yes"]).privatise(values)[0])
