// The votes of 250 teachers, noise on each count, the label that comes out and what answers cost.
(() => {
  const { choice, logarithmicSteps, logNormal, number, percent } = dpnotes;
  const VOTES = "var(--colour-1)";
  const ANSWER = "var(--colour-2)";
  const TEACHERS = 250;
  const LABELS = ["A", "B", "C", "D"];
  const DELTA = 1e-5;
  // Rényi orders, less 1, for what answers cost at the votes that are shown.
  const MOMENTS = logarithmicSteps(0.02, 10_000, 100, 4);

  const SCALES = logarithmicSteps(2, 200, 10);
  const QUERIES = [1, 3, 10, 30, 100, 300, 1000];
  // What so many queries cost whatever the votes, a row for each scale: `cost` of the mechanisms of
  // dpnotes at this delta, with which the tests compare it.
  const COSTS = {
    Gumbel: [
      [0.9992, 2.841, 7.133, 14.46, 32.54, 72.61, 190.9],
      [0.7991, 2.257, 5.524, 10.98, 24.1, 52.3, 133.5],
      [0.624, 1.749, 4.176, 8.154, 17.45, 36.8, 90.67],
      [0.499, 1.388, 3.25, 6.261, 13.14, 27.05, 64.34],
      [0.3989, 1.102, 2.535, 4.829, 9.961, 20.08, 46.41],
      [0.3164, 0.8676, 1.964, 3.704, 7.529, 14.88, 33.45],
      [0.2489, 0.6775, 1.511, 2.826, 5.671, 11.02, 24.12],
      [0.1988, 0.5374, 1.184, 2.2, 4.374, 8.384, 17.95],
      [0.1527, 0.4093, 0.8897, 1.644, 3.238, 6.125, 12.81],
      [0.1238, 0.3298, 0.7102, 1.308, 2.56, 4.801, 9.891],
      [0.09878, 0.2614, 0.5577, 1.023, 1.994, 3.71, 7.542],
      [0.07877, 0.2071, 0.438, 0.8018, 1.556, 2.878, 5.78],
      [0.06126, 0.16, 0.3354, 0.6126, 1.185, 2.179, 4.333],
      [0.04875, 0.1266, 0.2634, 0.4805, 0.9273, 1.699, 3.353],
      [0.03875, 0.1002, 0.2069, 0.377, 0.7264, 1.327, 2.603],
      [0.03066, 0.07852, 0.161, 0.2932, 0.5645, 1.029, 2.009],
      [0.02406, 0.06099, 0.1242, 0.2261, 0.4351, 0.792, 1.54],
      [0.01916, 0.04812, 0.09742, 0.1774, 0.3413, 0.6206, 1.203],
      [0.01464, 0.03639, 0.07316, 0.1333, 0.2565, 0.4662, 0.9016],
      [0.01182, 0.02914, 0.05829, 0.1062, 0.2046, 0.3718, 0.7183],
      [0.00937, 0.02292, 0.04563, 0.08323, 0.1604, 0.2916, 0.563],
    ],
    Laplace: [
      [1, 2.999, 9.106, 19.86, 47.18, 109.8, 298.1],
      [0.8, 2.399, 7.139, 15.24, 35.19, 79.65, 210.1],
      [0.625, 1.874, 5.482, 11.4, 25.44, 55.5, 142.3],
      [0.5, 1.499, 4.319, 8.796, 18.97, 40.29, 100.2],
      [0.4, 1.199, 3.397, 6.756, 14.25, 29.54, 71.21],
      [0.3174, 0.9517, 2.642, 5.156, 10.68, 21.64, 50.37],
      [0.25, 0.7494, 2.028, 3.916, 7.983, 15.84, 35.82],
      [0.2, 0.5994, 1.592, 3.039, 6.119, 11.94, 26.32],
      [0.1538, 0.4609, 1.211, 2.264, 4.504, 8.646, 18.55],
      [0.125, 0.3744, 0.9707, 1.797, 3.547, 6.735, 14.17],
      [0.09996, 0.2994, 0.7617, 1.404, 2.753, 5.177, 10.71],
      [0.07996, 0.2394, 0.5981, 1.099, 2.143, 3.996, 8.152],
      [0.06246, 0.1869, 0.4578, 0.8384, 1.628, 3.014, 6.069],
      [0.04996, 0.1494, 0.3596, 0.6573, 1.272, 2.343, 4.67],
      [0.03996, 0.1194, 0.2807, 0.5155, 0.9954, 1.826, 3.61],
      [0.03171, 0.0946, 0.22, 0.4009, 0.7728, 1.413, 2.775],
      [0.02496, 0.07436, 0.1698, 0.3092, 0.5954, 1.086, 2.121],
      [0.01996, 0.05936, 0.1332, 0.2426, 0.4668, 0.85, 1.654],
      [0.01534, 0.04551, 0.1002, 0.1824, 0.3508, 0.638, 1.237],
      [0.01246, 0.03686, 0.07986, 0.1454, 0.2798, 0.5087, 0.9844],
      [0.00996, 0.02936, 0.06256, 0.114, 0.2195, 0.3989, 0.7709],
    ],
    Gaussian: [
      [2.943, 5.545, 11.48, 23.35, 54.38, 126.4, 344.5],
      [2.288, 4.275, 8.721, 17.39, 39.38, 88.96, 235.4],
      [1.737, 3.221, 6.481, 12.68, 27.92, 61.15, 156.4],
      [1.356, 2.502, 4.983, 9.608, 20.68, 44.11, 109.3],
      [1.061, 1.948, 3.849, 7.329, 15.46, 32.18, 77.33],
      [0.8232, 1.507, 2.956, 5.57, 11.54, 23.47, 54.69],
      [0.634, 1.157, 2.258, 4.217, 8.596, 17.12, 38.73],
      [0.497, 0.9058, 1.76, 3.265, 6.573, 12.87, 28.37],
      [0.3734, 0.6797, 1.316, 2.426, 4.827, 9.291, 19.94],
      [0.2978, 0.5419, 1.047, 1.923, 3.797, 7.226, 15.22],
      [0.2335, 0.4249, 0.8197, 1.5, 2.943, 5.545, 11.48],
      [0.1831, 0.3332, 0.6422, 1.173, 2.288, 4.275, 8.721],
      [0.1399, 0.2546, 0.4906, 0.8941, 1.737, 3.221, 6.481],
      [0.1096, 0.1997, 0.3847, 0.7004, 1.356, 2.502, 4.983],
      [0.08581, 0.1565, 0.3017, 0.5489, 1.061, 1.948, 3.849],
      [0.06658, 0.1216, 0.2345, 0.4267, 0.8232, 1.507, 2.956],
      [0.05117, 0.09361, 0.1808, 0.3289, 0.634, 1.157, 2.258],
      [0.03999, 0.07328, 0.1417, 0.2579, 0.497, 0.9058, 1.76],
      [0.02989, 0.0549, 0.1063, 0.1938, 0.3734, 0.6797, 1.316],
      [0.02372, 0.04366, 0.08471, 0.1545, 0.2978, 0.5419, 1.047],
      [0.01848, 0.0341, 0.06629, 0.1211, 0.2335, 0.4249, 0.8197],
    ],
  };

  function logSum(logs) {
    const largest = Math.max(...logs);
    return largest + Math.log(d3.sum(logs, (x) => Math.exp(x - largest)));
  }

  const laplace = {
    density: (x) => Math.exp(-Math.abs(x)) / 2,
    below: (x) => (x < 0 ? Math.exp(x) / 2 : 1 - Math.exp(-x) / 2),
  };

  const gaussian = {
    density: (x) => Math.exp((-x * x) / 2) / Math.sqrt(2 * Math.PI),
    below: (x) => Math.exp(logNormal(x)),
  };

  // Points and weights of Gauss's rule, between the kinks that Laplace noise has at each count.
  function gaussRule(standing) {
    const kinks = standing.filter((x) => x > -40);
    const corners = d3.sort(new Set([...d3.range(-40, 40.5, 0.5), ...kinks]));
    const rule = [
      [0, 0.5688888888888889],
      [0.5384693101056831, 0.47862867049936647],
      [0.9061798459386640, 0.23692688505618908],
    ];
    return d3.pairs(corners).flatMap(([left, right]) => {
      const [middle, half] = [(left + right) / 2, (right - left) / 2];
      return rule.flatMap(([node, weight]) =>
        (node ? [-node, node] : [0]).map((at) => [middle + half * at, half * weight]),
      );
    });
  }

  // Label j wins with probability ∫ f(x - n_j) Π F(x - n_k) dx: output_distribution of dpnotes.
  function integratedChances({ density, below }, votes, scale) {
    const standing = votes.map((count) => (count - d3.max(votes)) / scale);
    const chances = votes.map(() => 0);
    for (const [x, weight] of gaussRule(standing)) {
      const reach = standing.map((count) => below(x - count));
      standing.forEach((count, j) => {
        const others = reach.filter((_, k) => k !== j);
        chances[j] += others.reduce((product, below) => product * below, weight * density(x - count));
      });
    }
    return chances;
  }

  function exponentialChances(votes, scale) {
    const logs = votes.map((count) => count / scale);
    const total = logSum(logs);
    return logs.map((x) => Math.exp(x - total));
  }

  // A bound on the log-probability of another label: each has some chance to overtake the winner.
  function logError(votes, winner, logOvertakes) {
    const gaps = votes.map((count) => votes[winner] - count).filter((_, j) => j !== winner);
    return Math.min(logSum(gaps.map(logOvertakes)), Math.log1p(-1 / votes.length));
  }

  // Theorem 3 of the 2017 paper, for any mechanism whose loss is at most so much.
  function pureRates(logQ, loss) {
    const holds = logQ <= -Math.log1p(Math.exp(loss));
    const near = Math.log1p(-Math.exp(logQ)) - Math.log1p(-Math.exp(loss + logQ));
    return { near, far: loss, reach: holds ? Infinity : 0 };
  }

  // Theorem 6 of the 2018 paper.
  function gaussianRates(logQ, sigma) {
    const high = sigma * Math.sqrt(-logQ);
    const [loss, nextLoss] = [high / sigma ** 2, (high + 1) / sigma ** 2];
    const limit = (high - 1) * loss - high * (Math.log1p(1 / high) - Math.log1p(-1 / high));
    const holds = high > 1 && logQ <= limit && logQ + loss < 0;
    const hidden = Math.exp((logQ + loss) * (1 - 1 / high));
    const near = Math.log1p(-Math.exp(logQ)) - Math.log1p(-hidden);
    return { near, far: nextLoss - logQ / high, reach: holds ? high : 0 };
  }

  // A bound on the log-moment where another label comes out with probability exp(logQ).
  function nearlyCertain(logQ, { near, far, reach }) {
    const main = Math.log1p(-Math.exp(logQ));
    return (l) => (l > reach ? Infinity : logSum([main + near * l, logQ + far * l]));
  }

  // log(up exp(x) + down exp(-x) + rest) for three probabilities, given as logarithms.
  function logMean(up, down, rest, x) {
    const change = Math.exp(up) * Math.expm1(x) + Math.exp(down) * Math.expm1(-x);
    if (Math.abs(change) < 0.5) return Math.log1p(change);
    return logSum([up + x, down - x, rest]);
  }

  // As epsilon_from_rdp of dpnotes and dp-accounting.
  function convert(divergence, order) {
    if (DELTA ** 2 + Math.expm1(-divergence) > 0) return 0;
    return divergence + Math.log1p(-1 / order) - Math.log(DELTA * order) / (order - 1);
  }

  // The smallest epsilon over the orders of so many queries with one log-moment.
  function epsilonOf(queries, momentOf) {
    const epsilons = MOMENTS.map((l) => convert((queries * momentOf(l)) / l, l + 1));
    return Math.max(0, d3.min(epsilons));
  }

  // A log-moment is a Rényi divergence times its order less 1: of one query, whatever the votes.
  const anyVotes = {
    // One moved vote shifts two counts, whose noise is independent.
    Laplace(scale) {
      return (l) => {
        const grow = Math.log((l + 1) / (2 * l + 1)) + l / scale;
        const shrink = Math.log(l / (2 * l + 1)) - (l + 1) / scale;
        return 2 * logSum([grow, shrink]);
      };
    },
    // The losses of all labels lie in an interval of length 2 / scale.
    Gumbel: (scale) => (l) => Math.min((l * (l + 1)) / 2 / scale ** 2, (2 * l) / scale),
    Gaussian: (scale) => (l) => (l * (l + 1)) / scale ** 2,
  };

  // The same at these votes.
  const atVotes = {
    Laplace(scale, votes, winner) {
      const overtakes = (gap) => Math.log((2 + gap / scale) / 4) - gap / scale;
      const logQ = logError(votes, winner, overtakes);
      return nearlyCertain(logQ, pureRates(logQ, 2 / scale));
    },
    // Label j has the probability p_j, in proportion to exp(n_j / scale). So the divergence from
    // each neighbour is known, and the largest is taken.
    Gumbel(scale, votes) {
      const logs = votes.map((count) => count / scale);
      const total = logSum(logs);
      const pairs = d3.cross(LABELS.keys(), LABELS.keys()).filter(([a, b]) => a !== b && votes[a]);
      const moments = pairs.map(([a, b]) => {
        const rest = logSum(logs.filter((_, j) => j !== a && j !== b)) - total;
        const [from, to] = [logs[a] - total, logs[b] - total];
        const newSum = logMean(to, from, rest, 1 / scale);
        return (l) => l * newSum + logMean(from, to, rest, l / scale);
      });
      return (l) => d3.max(moments, (moment) => moment(l));
    },
    Gaussian(scale, votes, winner) {
      const overtakes = (gap) => logNormal(-gap / scale / Math.SQRT2);
      const logQ = logError(votes, winner, overtakes);
      return nearlyCertain(logQ, gaussianRates(logQ, scale));
    },
  };

  // For each noise: its middle 90 %, in scales, and the distribution of the label.
  const NOISES = {
    Laplace: {
      middle: [-Math.log(10), Math.log(10)],
      chances: (votes, scale) => integratedChances(laplace, votes, scale),
    },
    Gumbel: {
      middle: [-Math.log(Math.log(20)), -Math.log(-Math.log(0.95))],
      chances: exponentialChances,
    },
    Gaussian: {
      middle: [-1.6448536269514722, 1.6448536269514722],
      chances: (votes, scale) => integratedChances(gaussian, votes, scale),
    },
  };

  function countVotes(first, share) {
    const others = TEACHERS - first;
    const second = Math.round((share * others) / 100);
    const third = Math.ceil((others - second) / 2);
    return [first, second, third, others - second - third];
  }

  function measure({ first, share, kind, scale, queries }) {
    const votes = countVotes(first, share);
    const winner = votes.indexOf(d3.max(votes));
    const most = anyVotes[kind](scale);
    const here = atVotes[kind](scale, votes, winner);
    const cost = COSTS[kind][SCALES.indexOf(scale)][QUERIES.indexOf(queries)];
    const secretCost = epsilonOf(queries, (l) => Math.min(most(l), here(l)));
    return {
      votes,
      winner,
      kind,
      scale,
      queries,
      chances: NOISES[kind].chances(votes, scale),
      cost,
      // Where the teachers disagree the cost whatever the votes may be lower, and holds too.
      costAtVotes: Math.min(cost, secretCost),
    };
  }

  function chance(probability) {
    if (probability > 0.99995) return "over 99.99 %";
    return probability < 0.00005 ? "under 0.01 %" : percent(probability, 2);
  }

  function plot({ votes, chances, kind, scale }) {
    const [low, high] = NOISES[kind].middle.map((edge) => (edge * scale) / TEACHERS);
    const rows = LABELS.flatMap((label, j) => {
      const share = votes[j] / TEACHERS;
      const noisy = { low: share + low, high: share + high };
      return [
        { label, row: "votes", fill: VOTES, value: share, text: `${votes[j]} votes`, ...noisy },
        { label, row: "answer", fill: ANSWER, value: chances[j], text: chance(chances[j]) },
      ];
    });
    const at = { fy: "label", y: "row" };
    return {
      height: 270,
      marginLeft: 36,
      marginRight: 96,
      marginBottom: 42,
      x: { domain: [0, 100], percent: true, ticks: 5, grid: true, label: "per cent" },
      y: { axis: null, domain: ["votes", "answer"], padding: 0.1 },
      fy: { label: null, padding: 0.2 },
      marks: [
        Plot.barX(rows, { ...at, x: "value", fill: "fill", insetBottom: 4 }),
        // Below the bar, where it can be seen.
        Plot.ruleY(rows, { ...at, x1: "low", x2: "high", strokeWidth: 2, dy: 9, clip: true }),
        Plot.text(rows, { ...at, text: "text", frameAnchor: "right", textAnchor: "start", dx: 8 }),
        Plot.ruleX([0]),
      ],
    };
  }

  function describe({ votes, chances, kind, scale, winner }) {
    const counts = LABELS.map((label, j) => `${label} ${votes[j]}`).join(", ");
    const shown = LABELS.map((label, j) => `${label} ${chance(chances[j])}`).join(", ");
    return (
      `Two bars for each of four labels. The votes of ${TEACHERS} teachers: ${counts}. The ` +
      `probability that the label comes out under ${kind} noise of scale ${scale}: ${shown}. ` +
      `Most votes are for ${LABELS[winner]}.`
    );
  }

  const writeCost = ([name, epsilon]) => [
    name,
    epsilon < 0.005 ? "under 0.01" : number(epsilon, 2),
  ];

  function facts({ votes, chances, winner, cost, costAtVotes }) {
    const [first, second] = d3.sort(votes, d3.descending);
    const costs = [
      ["ε of T answers at δ = 10⁻⁵, whatever the votes", cost],
      ["the same at these votes: a secret", costAtVotes],
    ];
    return [
      ["gap between first and second, in votes", number(first - second)],
      [`${LABELS[winner]}, which has most votes, comes out`, chance(chances[winner])],
      ...costs.map(writeCost),
    ];
  }

  dpnotes.figures["noisy-votes"] = {
    controls: [
      {
        name: "first",
        label: `votes for A, out of ${TEACHERS}`,
        steps: d3.range(50, TEACHERS + 1),
        start: 150,
        write: String,
      },
      {
        name: "share",
        label: "votes for B, out of the others",
        steps: d3.range(0, 101, 5),
        start: 50,
        write: (share) => `${share} %`,
      },
      {
        name: "kind",
        label: "kind of noise",
        make: choice,
        steps: Object.keys(COSTS),
        start: "Gumbel",
      },
      {
        name: "scale",
        label: "scale of the noise, 1/γ (Gaussian: σ), in votes",
        steps: SCALES,
        start: 20,
        write: String,
      },
      {
        name: "queries",
        label: "T, queries answered so far",
        steps: QUERIES,
        start: 100,
        write: (queries) => number(queries),
      },
    ],
    legend: [
      [VOTES, "share of the votes, with the middle 90 % of the noise on it"],
      [ANSWER, "probability that the label comes out"],
    ],
    moments: MOMENTS,
    measure,
    facts,
    describe,
    plot,
  };
})();
