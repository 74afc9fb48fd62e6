// The votes of 250 teachers, noise on each count, the label that comes out and what answers cost.
(() => {
  const { choice, logarithmicSteps, number, percent } = dpnotes;
  const VOTES = "var(--colour-1)";
  const ANSWER = "var(--colour-2)";
  const TEACHERS = 250;
  const LABELS = ["A", "B", "C", "D"];
  const DELTA = 1e-5;
  // Rényi orders, less 1. Every cost here comes from Rényi divergences, whatever the noise.
  const MOMENTS = logarithmicSteps(0.02, 10_000, 100, 4);

  function logSum(logs) {
    const largest = Math.max(...logs);
    return largest + Math.log(d3.sum(logs, (x) => Math.exp(x - largest)));
  }

  // exp(x²) erfc(x) for x of at least 0, by the midpoint rule and the pole that it passes over.
  function scaledErfc(x) {
    const step = Math.sqrt(Math.PI / 12);
    const points = d3.range(0.5, 12).map((k) => k * step);
    const sum = d3.sum(points, (t) => Math.exp(-t * t) / (x * x + t * t));
    const turns = (2 * Math.PI) / step;
    const pole = x < turns / 2 ? Math.exp(x * x) / (1 + Math.exp(turns * x)) : 0;
    return 2 * ((step * x * sum) / Math.PI + pole);
  }

  // The logarithm of the normal distribution, log_ndtr of scipy.
  function logNormal(x) {
    const logTail = Math.log(scaledErfc(Math.abs(x) / Math.SQRT2) / 2) - (x * x) / 2;
    return x < 0 ? logTail : Math.log1p(-Math.exp(logTail));
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
    return {
      votes,
      winner,
      kind,
      scale,
      queries,
      chances: NOISES[kind].chances(votes, scale),
      cost: epsilonOf(queries, most),
      costAtVotes: epsilonOf(queries, (l) => Math.min(most(l), here(l))),
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
    epsilon < 0.0005 ? "under 0.001" : number(epsilon, 3),
  ];

  function facts({ votes, chances, winner, cost, costAtVotes }) {
    const [first, second] = d3.sort(votes, d3.descending);
    const costs = [
      ["ε at δ = 10⁻⁵ by Rényi divergences, whatever the votes", cost],
      ["the same at these votes, itself a secret", costAtVotes],
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
        steps: Object.keys(NOISES),
        start: "Laplace",
      },
      {
        name: "scale",
        label: "scale of the noise (1/γ or σ), in votes",
        steps: logarithmicSteps(2, 200, 20),
        start: 20,
        write: String,
      },
      {
        name: "queries",
        label: "queries answered so far",
        steps: [...new Set(logarithmicSteps(1, 10_000, 20).map(Math.round))],
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
