// What private labels are good for: their balanced accuracy, which a learner needs above one half.
(() => {
  const { logarithmicSteps, number, percent, nearlyOne } = dpnotes;
  const RIGHT = "var(--colour-1)";
  const WRONG = "var(--colour-2)";
  const BINS = 50;

  // The recursion of the chapter, outwards from the likeliest score, as in log_score_pmf of dpnotes,
  // whose stated epsilon is twice this cost.
  function logScorePmf(n, epsilon, keep) {
    const step = (i) => Math.log((n - i + 1) / i) + epsilon;
    const mode = Math.min(n, Math.floor((n + 1) * keep));
    const logPmf = new Float64Array(n + 1);
    for (let i = mode + 1; i <= n; i++) logPmf[i] = logPmf[i - 1] + step(i);
    for (let i = mode; i > 0; i--) logPmf[i - 1] = logPmf[i] - step(i);
    const logTotal = Math.log(logPmf.reduce((total, x) => total + Math.exp(x), 0));
    return logPmf.map((x) => x - logTotal);
  }

  function logSum(logs) {
    const largest = d3.max(logs);
    return largest + Math.log(logs.reduce((total, x) => total + Math.exp(x - largest), 0));
  }

  // The logarithm of the probability of each number or a smaller one.
  function accumulate(logPmf) {
    const logCdf = Float64Array.from(logPmf);
    for (let i = 1; i < logCdf.length; i++) {
      const [low, high] = d3.extent([logCdf[i - 1], logPmf[i]]);
      logCdf[i] = high + Math.log1p(Math.exp(low - high));
    }
    return logCdf;
  }

  // With a of the positives kept, Pr[(a / positives + b / negatives) / 2 <= part / BINS] as a log.
  function logAtMost(part, logPositives, logNegatives) {
    const positives = logPositives.length - 1;
    const negatives = logNegatives.length - 1;
    const logs = logPositives.map((log, a) => {
      const room = 2 * part * positives - BINS * a;
      if (room < 0) return -Infinity;
      const b = Math.floor((negatives * room) / (BINS * positives));
      return log + logNegatives[Math.min(b, negatives)];
    });
    return logSum(logs);
  }

  function measure({ epsilon, n, share }) {
    const keep = 1 / (1 + Math.exp(-epsilon));
    const positives = Math.max(1, Math.round(share * n));
    const negatives = n - positives;
    const deviation = Math.sqrt(keep * (1 - keep) * (1 / positives + 1 / negatives)) / 2;
    const logPositives = logScorePmf(positives, epsilon, keep);
    const logNegatives = accumulate(logScorePmf(negatives, epsilon, keep));
    const logFailure = logAtMost(BINS / 2, logPositives, logNegatives);
    const parts = d3.range(BINS + 1).map((part) =>
      // Twelve standard deviations away nothing is left to be seen.
      Math.abs(part / BINS - keep) > 12 * deviation && part !== BINS / 2
        ? Number(part / BINS > keep)
        : Math.exp(logAtMost(part, logPositives, logNegatives)),
    );
    // The first bin holds its left end, 0, as well.
    const bins = d3.pairs([0, ...parts.slice(1)], (low, high) => high - low);
    const logTooFew = logSum(logScorePmf(n, epsilon, keep).subarray(0, Math.ceil(n / 2)));
    return { n, keep, positives, deviation, bins, logFailure, logTooFew };
  }

  function plot({ bins }, width) {
    const inset = width > 500 ? 1 : 0.5;
    const bars = bins.map((probability, bin) => ({
      from: bin / BINS,
      to: (bin + 1) / BINS,
      probability,
    }));
    return {
      height: Math.max(220, Math.min(300, width / 2)),
      marginLeft: 56,
      marginBottom: 42,
      // Axes that stay: a hump that narrows is seen to narrow.
      x: { domain: [0, 1], ticks: 5, label: "balanced accuracy of the private labels" },
      y: { domain: [0, 1], ticks: 5, grid: true, label: "probability" },
      marks: [
        Plot.rectY(bars, {
          x1: "from",
          x2: "to",
          y: "probability",
          fill: ({ to }) => (to <= 0.5 ? WRONG : RIGHT),
          insetLeft: inset,
          insetRight: inset,
        }),
        Plot.ruleY([0]),
        Plot.ruleX([0.5], { strokeWidth: 2, strokeDasharray: "5 3" }),
        Plot.text([0.5], { x: (x) => x, text: () => "½", frameAnchor: "top", dx: -10 }),
      ],
    };
  }

  const facts = ({ n, keep, positives, logFailure, logTooFew }) => [
    ["share of labels kept, p", percent(keep, 2)],
    ["positives", `${number(positives)} of ${number(n)} labels`],
    ["a learner can use them, Pr[π > π′]", nearlyOne(logFailure)],
    ["at least half are kept, Pr[s ≥ n/2]", nearlyOne(logTooFew)],
  ];

  function describe({ n, positives, keep, deviation, logFailure }) {
    return (
      `The distribution of the balanced accuracy of ${number(n)} private labels, ` +
      `${number(positives)} of them positive, from 0 to 1: a hump around ${number(keep, 3)} with ` +
      `standard deviation ${number(deviation, 4)}. It is above one half, so that a learner can ` +
      `use the labels, with probability ${nearlyOne(logFailure)}.`
    );
  }

  dpnotes.figures["kept-labels"] = {
    controls: [
      {
        name: "epsilon",
        label: "ε, the privacy cost of a label",
        steps: logarithmicSteps(0.02, 4),
        start: 0.05,
        write: String,
      },
      {
        name: "n",
        label: "n, the number of labels",
        steps: logarithmicSteps(10, 100_000),
        start: 1000,
        write: (n) => number(n),
      },
      {
        name: "share",
        label: "share of positives",
        steps: [0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5],
        start: 0.3,
        write: (share) => percent(share, 0),
      },
    ],
    legend: [
      [RIGHT, "above ½: a learner can use the labels"],
      [WRONG, "½ or below: it would be misled"],
    ],
    measure,
    facts,
    describe,
    plot,
  };
})();
