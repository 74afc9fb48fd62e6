"""Multi-Freq-LDPy: the clients of its protocols of the local model.

Its README promises "local differential privacy (LDP) guarantees", so that every two inputs of a
client are neighbours. Two tuples may differ in all their values: otherwise the client that "splits
the privacy budget" over them would not have to. RS+FD is judged by one value changed, too.
"""

from audited import Audits

QUOTE = ":param epsilon: privacy guarantee"
FIRST = ":param eps_1: lower bound of privacy guarantee (a single report)"
PERMANENT = ":param eps_perm: upper bound of privacy guarantee"
PURE = "the docstring of multi_freq_ldpy.pure_frequency_oracles.{}"
LONG = "the docstring of multi_freq_ldpy.long_freq_est.{}"
SEVERAL = "the docstring of multi_freq_ldpy.mdim_freq_est.{}"

audits = Audits(
    "multi-freq-ldpy",
    noise="in doubles where a histogram is encoded (`numpy.random.laplace`), otherwise coins alone",
    epsilon=1.0,
    unit="any two values",
    quote=QUOTE,
    pair=(0, 1),
)


@audits.add("GRR_Client", where=PURE.format("GRR.GRR_Client"))
def grr(value):
    from multi_freq_ldpy.pure_frequency_oracles.GRR import GRR_Client

    return int(GRR_Client(value, 4, 1.0))


@audits.add("UE_Client, symmetric", where=PURE.format("UE.UE_Client"))
def sue(value):
    from multi_freq_ldpy.pure_frequency_oracles.UE import UE_Client

    return UE_Client(value, 3, 1.0, False)


@audits.add("UE_Client, optimal", where=PURE.format("UE.UE_Client"))
def oue(value):
    from multi_freq_ldpy.pure_frequency_oracles.UE import UE_Client

    return UE_Client(value, 3, 1.0, True)


@audits.add("HE_Client", where=PURE.format("HE.HE_Client"))
def he(value):
    from multi_freq_ldpy.pure_frequency_oracles.HE import HE_Client

    return HE_Client(value, 2, 1.0)


@audits.add("LH_Client, binary", where=PURE.format("LH.LH_Client"))
def blh(value):
    import xxhash
    from multi_freq_ldpy.pure_frequency_oracles.LH import LH_Client

    report, seed = LH_Client(value, 4, 1.0, False)
    return [bool(report == xxhash.xxh32(str(v), seed=seed).intdigest() % 2) for v in (0, 1)]


@audits.add("LH_Client, optimal", where=PURE.format("LH.LH_Client"))
def olh(value):
    import xxhash
    from multi_freq_ldpy.pure_frequency_oracles.LH import LH_Client

    report, seed = LH_Client(value, 8, 1.0, True)
    return [bool(report == xxhash.xxh32(str(v), seed=seed).intdigest() % 4) for v in (0, 1)]


@audits.add(
    "SS_Client",
    where=PURE.format("SS.SS_Client"),
    cause="The report is called a set and is an array whose first place holds the true value "
    "wherever it is in it (`sub_set[0] = int(input_data)` in `SS_Client`). The later package "
    "`ldp-toolbox` shuffles it.",
)
def ss(value):
    from multi_freq_ldpy.pure_frequency_oracles.SS import SS_Client

    return int(SS_Client(value, 10, 1.0)[0])


@audits.add("ADP_Client", where=PURE.format("ADP.ADP_Client"))
def adp(value):
    from multi_freq_ldpy.pure_frequency_oracles.ADP import ADP_Client

    return ADP_Client(value, 10, 1.0)


@audits.add("L_GRR_Client", where=LONG.format("L_GRR.L_GRR_Client"), quote=FIRST)
def l_grr(value):
    from multi_freq_ldpy.long_freq_est.L_GRR import L_GRR_Client

    return int(L_GRR_Client(value, 3, 4.0, 1.0))


@audits.add("L_SUE_Client", where=LONG.format("L_SUE.L_SUE_Client"), quote=FIRST)
def l_sue(value):
    from multi_freq_ldpy.long_freq_est.L_SUE import L_SUE_Client

    return L_SUE_Client(value, 3, 4.0, 1.0)


@audits.add("L_OUE_Client", where=LONG.format("L_OUE.L_OUE_Client"), quote=FIRST)
def l_oue(value):
    from multi_freq_ldpy.long_freq_est.L_OUE import L_OUE_Client

    return L_OUE_Client(value, 3, 4.0, 1.0)


@audits.add("L_OSUE_Client", where=LONG.format("L_OSUE.L_OSUE_Client"), quote=FIRST)
def l_osue(value):
    from multi_freq_ldpy.long_freq_est.L_OSUE import L_OSUE_Client

    return L_OSUE_Client(value, 3, 4.0, 1.0)


@audits.add("L_SOUE_Client", where=LONG.format("L_SOUE.L_SOUE_Client"), quote=FIRST)
def l_soue(value):
    from multi_freq_ldpy.long_freq_est.L_SOUE import L_SOUE_Client

    return L_SOUE_Client(value, 3, 4.0, 1.0)


@audits.add("dBitFlipPM_Client", where=LONG.format("dBitFlipPM.dBitFlipPM_Client"), quote=PERMANENT)
def d_bit_flip(value):
    from multi_freq_ldpy.long_freq_est.dBitFlipPM import dBitFlipPM_Client

    return dBitFlipPM_Client(value, 3, 3, 2, 1.0)


TUPLES = {"pair": ((0, 0), (1, 1)), "unit": "any two tuples of values"}


@audits.add("SPL_GRR_Client", where=SEVERAL.format("SPL_solution.SPL_GRR_Client"), **TUPLES)
def spl_grr(values):
    from multi_freq_ldpy.mdim_freq_est.SPL_solution import SPL_GRR_Client

    return [int(report) for report in SPL_GRR_Client(values, [2, 2], 2, 1.0)]


@audits.add("SMP_GRR_Client", where=SEVERAL.format("SMP_solution.SMP_GRR_Client"), **TUPLES)
def smp_grr(values):
    from multi_freq_ldpy.mdim_freq_est.SMP_solution import SMP_GRR_Client

    return [int(part) for part in SMP_GRR_Client(values, [2, 2], 2, 1.0)]


ONE_ATTRIBUTE = {
    "pair": ((0, 0), (1, 0)),
    "unit": "two tuples that differ in one value, which is less than the local model asks",
}


@audits.add(
    "RSpFD_GRR_Client", where=SEVERAL.format("RSpFD_solution.RSpFD_GRR_Client"), **ONE_ATTRIBUTE
)
def rs_fd_grr_one_attribute(values):
    from multi_freq_ldpy.mdim_freq_est.RSpFD_solution import RSpFD_GRR_Client

    return [int(report) for report in RSpFD_GRR_Client(values, [2, 2], 2, 1.0)]


@audits.add(
    "RSpFD_GRR_Client",
    where=SEVERAL.format("RSpFD_solution.RSpFD_GRR_Client"),
    cause="The sampled attribute is reported at a larger epsilon "
    "(`amp_eps = np.log(d * (np.exp(epsilon) - 1) + 1)`). That is enough where two tuples differ "
    "in one value, which costs 1 exactly: whoever reads the promise so finds it kept. Where they "
    "differ in all, the sample meets a difference whichever it takes. This pair costs 1.49.",
    **TUPLES,
)
def rs_fd_grr_all_attributes(values):
    from multi_freq_ldpy.mdim_freq_est.RSpFD_solution import RSpFD_GRR_Client

    return [int(report) for report in RSpFD_GRR_Client(values, [2, 2], 2, 1.0)]
