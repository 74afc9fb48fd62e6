// How many of n labels the exponential mechanism keeps, against the half that it is asked for.
(() => {
  const { logarithmicSteps, number, percent, nearlyOne } = dpnotes;
  const KEPT = "var(--colour-1)";
  const LOST = "var(--colour-2)";
  const MOST_BARS = 150;
  const half = (n) => number(n / 2, n % 2);

  // The recursion of the chapter, outwards from the likeliest score, as in log_score_pmf of dpnotes.
  function logScorePmf(n, epsilon, keep) {
    const step = (i) => Math.log((n - i + 1) / i) + epsilon / 2;
    const mode = Math.min(n, Math.floor((n + 1) * keep));
    const logPmf = new Float64Array(n + 1);
    for (let i = mode + 1; i <= n; i++) logPmf[i] = logPmf[i - 1] + step(i);
    for (let i = mode; i > 0; i--) logPmf[i - 1] = logPmf[i] - step(i);
    const logTotal = Math.log(logPmf.reduce((total, x) => total + Math.exp(x), 0));
    return logPmf.map((x) => x - logTotal);
  }

  function logSum(logs) {
    const largest = logs.at(-1);
    return largest + Math.log(logs.reduce((total, x) => total + Math.exp(x - largest), 0));
  }

  function measure({ epsilon, n }) {
    const keep = 1 / (1 + Math.exp(-epsilon / 2));
    const mean = n * keep;
    const deviation = Math.sqrt(mean * (1 - keep));
    const logPmf = logScorePmf(n, epsilon, keep);
    // Below the half, probabilities only grow: the last one is the largest.
    const logFailure = logSum(logPmf.subarray(0, Math.ceil(n / 2)));
    const success = -Math.expm1(logFailure);
    const distance = (mean - n / 2) / deviation;
    return { epsilon, n, keep, mean, deviation, distance, logPmf, logFailure, success };
  }

  const halfInSight = ({ distance }) => distance <= 12;

  function scoresInSight(measured) {
    const { n, mean, deviation, logPmf } = measured;
    const from = Math.floor(mean - 6 * deviation);
    const low = halfInSight(measured) ? Math.min(from, Math.ceil(n / 2) - 1) : from;
    const high = Math.min(n, Math.ceil(mean + 6 * deviation));
    return d3.range(Math.max(0, low), high + 1).map((score) => ({
      score,
      probability: Math.exp(logPmf[score]),
      enough: score >= n / 2,
    }));
  }

  function bars(scores, width) {
    const inset = scores.length < width / 8 ? 1 : 0;
    return [
      Plot.rectY(scores, {
        x1: ({ score }) => score - 0.5,
        x2: ({ score }) => score + 0.5,
        y: "probability",
        fill: ({ enough }) => (enough ? KEPT : LOST),
        insetLeft: inset,
        insetRight: inset,
      }),
    ];
  }

  function areas(scores) {
    const tooFew = d3.bisector(({ enough }) => enough).left(scores, true) + 1;
    const area = (part, fill) => Plot.areaY(part, { x: "score", y: "probability", fill });
    return [area(scores, KEPT), area(scores.slice(0, tooFew), LOST)];
  }

  function halfMark(measured, [left, right]) {
    const { n } = measured;
    if (!halfInSight(measured)) {
      const text = [`← n/2 = ${half(n)} is far to the left`];
      return [Plot.text(text, { frameAnchor: "top-left", dx: 4 })];
    }
    const isLeft = n / 2 - left < 0.3 * (right - left);
    const beside = isLeft ? { textAnchor: "start", dx: 6 } : { textAnchor: "end", dx: -6 };
    return [
      Plot.ruleX([n / 2], { strokeWidth: 2, strokeDasharray: "5 3" }),
      Plot.text([n / 2], { x: (x) => x, text: () => "n/2", frameAnchor: "top", ...beside }),
    ];
  }

  function plot(measured, width) {
    const scores = scoresInSight(measured);
    const edges = [scores[0].score - 0.5, scores.at(-1).score + 0.5];
    const ticks = d3.ticks(...edges, Math.min(6, width / 90)).filter(Number.isInteger);
    const top = d3.max(scores, ({ probability }) => probability);
    return {
      height: Math.max(220, Math.min(300, width / 2)),
      marginLeft: 56,
      marginBottom: 42,
      x: { domain: edges, ticks, tickFormat: ",d", label: "labels kept, q" },
      // Room for the mark of the half above the highest bar.
      y: { domain: [0, 1.15 * top], ticks: 5, grid: true, label: "probability" },
      marks: [
        ...(scores.length <= MOST_BARS ? bars(scores, width) : areas(scores)),
        Plot.ruleY([0]),
        ...halfMark(measured, edges),
      ],
    };
  }

  function describe({ n, mean, deviation, distance, logFailure }) {
    return (
      `The probability of each number of kept labels, out of ${number(n)}: a hump around ` +
      `${number(mean, 1)} with standard deviation ${number(deviation, 1)}. Half of the labels, ` +
      `${half(n)}, lies ${number(distance, 1)} standard deviations below its ` +
      `centre; half or more are kept with probability ${nearlyOne(logFailure)}.`
    );
  }

  function facts({ epsilon, n, keep, mean, logFailure }) {
    return [
      ["label-privacy cost, ε/2", String(Number((epsilon / 2).toPrecision(3)))],
      ["label accuracy, p", percent(keep, 2)],
      ["success probability, Pr[q ≥ n/2]", nearlyOne(logFailure)],
      ["labels kept on average", `${number(mean, 1)} of ${number(n)}`],
    ];
  }

  dpnotes.figures["kept-labels"] = {
    controls: [
      {
        name: "epsilon",
        label: "ε, the parameter of the mechanism",
        steps: logarithmicSteps(0.05, 8),
        start: 0.1,
        write: String,
      },
      {
        name: "n",
        label: "n, the number of labels",
        steps: logarithmicSteps(10, 100_000),
        start: 1000,
        write: (n) => number(n),
      },
    ],
    legend: [
      [KEPT, "half or more are kept"],
      [LOST, "fewer than half are kept"],
    ],
    measure,
    facts,
    describe,
    plot,
  };
})();
