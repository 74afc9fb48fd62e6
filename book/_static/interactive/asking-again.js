// What many answers cost together, by what is known of each of them.
(() => {
  const { logarithmicSteps, logNormal, number } = dpnotes;
  const EXACT = "var(--colour-1)";
  const LAPLACE = "var(--colour-2)";
  const GAUSS = "var(--colour-3)";
  const ADVANCED = "var(--colour-4)";
  const MOST = 10_000;
  const QUERIES = [...new Set(logarithmicSteps(1, MOST, 15).map(Math.round))];
  // Rényi orders, less 1.
  const MOMENTS = logarithmicSteps(0.001, 100_000, 60, 6);

  const logFactorial = [0];
  for (let k = 1; k <= MOST; k++) logFactorial.push(logFactorial[k - 1] + Math.log(k));

  function logSum(a, b) {
    const [low, high] = a < b ? [a, b] : [b, a];
    return high === -Infinity ? high : high + Math.log1p(Math.exp(low - high));
  }

  const bySum = (epsilon, queries) => queries * epsilon;

  const advanced = (epsilon, queries, delta) =>
    Math.sqrt(-2 * queries * Math.log(delta)) * epsilon + queries * epsilon * Math.expm1(epsilon);

  // As `compose` of dpnotes: the losses of randomized response, the largest first.
  function exact(epsilon, queries, delta) {
    const losses = [];
    const chances = [];
    let [above, logRatios] = [0, -Infinity];
    for (let lies = 0; 2 * lies < queries; lies++) {
      const loss = (queries - 2 * lies) * epsilon;
      // With epsilon at this loss, only the larger ones count.
      if (above - Math.exp(loss + logRatios) > delta) break;
      const logChance =
        logFactorial[queries] - logFactorial[lies] - logFactorial[queries - lies] -
        (queries - lies) * Math.log1p(Math.exp(-epsilon)) - lies * Math.log1p(Math.exp(epsilon));
      losses.push(loss);
      chances.push(Math.exp(logChance));
      above += Math.exp(logChance);
      logRatios = logSum(logRatios, logChance - loss);
    }
    if (above <= delta) return 0;
    let total = Math.min(Math.max(0, Math.log(above - delta) - logRatios), losses[0]);
    // Newton's method on a sum in which nothing cancels.
    for (let step = 0; step < 8; step++) {
      let [excess, slope] = [-delta, 0];
      losses.forEach((loss, i) => {
        if (loss <= total) return;
        excess -= chances[i] * Math.expm1(total - loss);
        slope += chances[i] * Math.exp(total - loss);
      });
      if (slope === 0) break;
      total = Math.max(0, total + excess / slope);
    }
    return total;
  }

  // The improved conversion of epsilon_from_rdp of dpnotes, for an order and its divergence.
  function convert(divergence, moment, delta) {
    if (delta ** 2 + Math.expm1(-divergence) >= 0) return 0;
    const order = moment + 1;
    return Math.max(0, divergence + Math.log1p(-1 / order) - Math.log(order * delta) / moment);
  }

  const leastOf = (delta, divergenceOf) => d3.min(MOMENTS, (l) => convert(divergenceOf(l), l, delta));

  // Any mechanism of cost epsilon is epsilon^2 / 2 zero-concentrated.
  function concentrated(epsilon, queries, delta) {
    const rho = (queries * epsilon ** 2) / 2;
    return Math.min(queries * epsilon, leastOf(delta, (l) => rho * (l + 1)));
  }

  // As laplace_rdp of dpnotes.
  function laplaceDivergence(epsilon, l) {
    const grow = Math.log((l + 1) / (2 * l + 1)) + l * epsilon;
    const shrink = Math.log(l / (2 * l + 1)) - (l + 1) * epsilon;
    return Math.min(logSum(grow, shrink) / l, epsilon);
  }

  function withLaplace(epsilon, queries, delta) {
    const simple = exact(epsilon, queries, delta);
    return Math.min(simple, leastOf(delta, (l) => queries * laplaceDivergence(epsilon, l)));
  }

  // As gaussian_cost of dpnotes, for noise of the variance of Laplace noise, 2 / epsilon^2.
  function withGauss(epsilon, queries, delta) {
    const mu = Math.sqrt(queries / 2) * epsilon;
    const excess = (total) => {
      const logNear = logNormal(mu / 2 - total / mu);
      const logFar = total + logNormal(-mu / 2 - total / mu);
      return logNear + Math.log(-Math.expm1(logFar - logNear)) - Math.log(delta);
    };
    let [low, high] = [0, mu * (mu / 2 + Math.sqrt(-2 * Math.log(delta)))];
    if (excess(low) <= 0) return 0;
    while (high - low > 1e-9 * high) {
      const middle = (low + high) / 2;
      if (excess(middle) > 0) low = middle;
      else high = middle;
    }
    return high;
  }

  const RULES = { sum: bySum, advanced, concentrated, exact, laplace: withLaplace, gauss: withGauss };

  function costsOf(epsilon, queries, delta) {
    return Object.fromEntries(
      Object.entries(RULES).map(([name, rule]) => [name, rule(epsilon, queries, delta)]),
    );
  }

  let last = {};

  function curvesOf(epsilon, exponent) {
    const key = `${epsilon} ${exponent}`;
    if (last.key !== key) {
      const curve = QUERIES.map((queries) => ({ queries, ...costsOf(epsilon, queries, 10 ** exponent) }));
      last = { key, curve };
    }
    return last.curve;
  }

  function measure({ epsilon, queries, exponent }) {
    const costs = costsOf(epsilon, queries, 10 ** exponent);
    return { epsilon, queries, exponent, costs, curve: curvesOf(epsilon, exponent) };
  }

  function plot({ queries, costs, curve }, width) {
    const drawn = [
      ["sum", "currentColor", "1 0"],
      ["advanced", ADVANCED, "8 3"],
      ["exact", EXACT, "1 0"],
      ["laplace", LAPLACE, "3 7"],
      ["gauss", GAUSS, "2 3"],
    ];
    return {
      height: Math.max(260, Math.min(360, width / 1.8)),
      marginLeft: 52,
      marginRight: 30,
      marginBottom: 42,
      x: { type: "log", domain: [1, MOST], ticks: [1, 10, 100, 1000, MOST], tickFormat: ",", label: "answers, k" },
      y: { type: "log", domain: [0.01, 100], ticks: [0.01, 0.1, 1, 10, 100], tickFormat: String, grid: true, label: "total ε (nats)" },
      marks: [
        ...drawn.map(([name, stroke, strokeDasharray]) =>
          Plot.line(curve, { x: "queries", y: (d) => Math.max(d[name], 1e-9), stroke, strokeDasharray, strokeWidth: 2, clip: true }),
        ),
        Plot.ruleX([queries], { strokeWidth: 1.5 }),
        ...drawn.map(([name, fill]) =>
          Plot.dot([costs[name]], { x: queries, y: (cost) => Math.max(cost, 1e-9), fill, r: 4, clip: true }),
        ),
      ],
    };
  }

  const write = (cost) => (cost < 0.0005 ? "under 0.001" : number(cost, 3));

  function describe({ epsilon, queries, exponent, costs }) {
    return (
      `Five rising curves of the total cost over the number of answers, both on logarithmic axes. ` +
      `At ${number(queries)} answers of epsilon ${epsilon} and a delta of ten to the power ` +
      `${exponent}, the sum is ${write(costs.sum)}, advanced composition ${write(costs.advanced)}, ` +
      `the exact cost of any mechanisms ${write(costs.exact)}, of Laplace noise at most ` +
      `${write(costs.laplace)}, of Gaussian noise of the same variance ${write(costs.gauss)}.`
    );
  }

  const facts = ({ costs }) => [
    ["the sum, k ε", write(costs.sum)],
    ["advanced composition", write(costs.advanced)],
    ["any mechanisms, by zCDP", write(costs.concentrated)],
    ["any mechanisms, exactly", write(costs.exact)],
    ["Laplace noise, at most", write(costs.laplace)],
    ["Gaussian noise of the same variance", write(costs.gauss)],
  ];

  dpnotes.figures["asking-again"] = {
    controls: [
      {
        name: "epsilon",
        label: "ε, the cost of one answer",
        steps: logarithmicSteps(0.01, 2, 20),
        start: 0.1,
        write: String,
      },
      {
        name: "queries",
        label: "k, the number of answers",
        steps: QUERIES,
        start: 100,
        write: (queries) => number(queries),
      },
      {
        name: "exponent",
        label: "δ, the same for all rules but the sum",
        steps: d3.range(-12, -2),
        start: -5,
        write: (exponent) => `10⁻${String(-exponent).replace(/\d/g, (d) => "⁰¹²³⁴⁵⁶⁷⁸⁹"[d])}`,
      },
    ],
    legend: [
      [EXACT, "any mechanisms, exactly"],
      [LAPLACE, "Laplace noise"],
      [GAUSS, "Gaussian noise of the same variance"],
      [ADVANCED, "advanced composition"],
      ["currentColor", "the sum"],
    ],
    moments: MOMENTS,
    measure,
    facts,
    describe,
    plot,
  };
})();
