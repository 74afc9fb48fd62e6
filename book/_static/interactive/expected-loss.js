// The expected loss of one weight with Laplace noise on it, for data around +1 and -1. The reader
// chooses the weight before the noise comes.
(() => {
  const { number } = dpnotes;
  const PLAIN = "var(--colour-1)";
  const NOISY = "var(--colour-2)";
  const OWN = "var(--colour-3)";
  const WIDEST = 11;
  const HIGHEST = 2;
  const TERMS = 24;

  // Weights of Cohen, Rodriguez Villegas and Zagier for an alternating series, signs included.
  const weights = (() => {
    const power = (3 + Math.sqrt(8)) ** TERMS;
    const total = (power + 1 / power) / 2;
    const found = [];
    let term = -1;
    let rest = -total;
    for (let k = 0; k < TERMS; k++) {
      rest = term - rest;
      found.push(rest / total);
      term *= ((k + TERMS) * (k - TERMS)) / ((k + 0.5) * (k + 1));
    }
    return found;
  })();

  const relativeExp = (x) => (x === 0 ? 1 : Math.expm1(x) / x);

  // As expected_logistic_loss of dpnotes: the loss of a margin with Laplace noise of a scale on it.
  function lossOfMargin(margin, scale) {
    const plain = Math.max(0, -margin) + Math.log1p(Math.exp(-Math.abs(margin)));
    if (scale === 0) return plain;
    const distance = Math.abs(margin);
    const rate = 1 / scale;
    const decay = Math.exp(-rate * distance);
    let penalty = 0;
    for (let k = 0; k < TERMS; k++) {
      const slower = Math.exp(-Math.min(rate, k + 1) * distance);
      const between = slower * distance * relativeExp(-Math.abs(rate - (k + 1)) * distance);
      const beyond = Math.exp(-(k + 1) * distance) / (k + 1 + rate);
      penalty += weights[k] * (decay / (k + rate) + between - beyond);
    }
    return plain + penalty / 2;
  }

  // Averaged over the data: the label times the feature is normal around 1.
  function expectedLoss(weight, spread, scale) {
    let total = 0;
    let mass = 0;
    for (let step = -8; step <= 8; step += 0.0625) {
      const share = Math.exp((-step * step) / 2);
      const z = 1 + spread * step;
      total += share * lossOfMargin(weight * z, scale * Math.abs(z));
      mass += share;
    }
    return total / mass;
  }

  // The loss is convex in the weight: golden sections close in on its lowest point.
  function lowest(spread, scale) {
    let [low, high] = [0, 40];
    const ratio = (Math.sqrt(5) - 1) / 2;
    let [left, right] = [high - ratio * (high - low), low + ratio * (high - low)];
    let [atLeft, atRight] = [left, right].map((w) => expectedLoss(w, spread, scale));
    while (high - low > 1e-5) {
      if (atLeft < atRight) {
        [high, right, atRight] = [right, left, atLeft];
        left = high - ratio * (high - low);
        atLeft = expectedLoss(left, spread, scale);
      } else {
        [low, left, atLeft] = [left, right, atRight];
        right = low + ratio * (high - low);
        atRight = expectedLoss(right, spread, scale);
      }
    }
    const weight = (low + high) / 2;
    return { weight, loss: expectedLoss(weight, spread, scale) };
  }

  const curve = (spread, scale) =>
    d3.range(-1, WIDEST + 0.01, 0.2).map((weight) => ({
      weight,
      loss: expectedLoss(weight, spread, scale),
    }));

  function measure({ b, sigma, w }) {
    const plain = { weight: 2 / sigma ** 2, loss: expectedLoss(2 / sigma ** 2, sigma, 0) };
    const best = lowest(sigma, b);
    const own = { weight: w, loss: expectedLoss(w, sigma, b) };
    return { b, sigma, plain, best, own, before: curve(sigma, 0), after: curve(sigma, b) };
  }

  function plot({ plain, best, own, before, after }, width) {
    const at = { x: "weight", y: "loss" };
    const dot = (point, fill) => Plot.dot([point], { ...at, fill, r: 5 });
    // A loss above the picture is marked at its edge; the number below tells it.
    const yours = { weight: own.weight, loss: Math.min(own.loss, HIGHEST) };
    return {
      height: Math.max(230, Math.min(320, width / 2)),
      marginLeft: 48,
      marginBottom: 42,
      x: { domain: [-1, WIDEST], ticks: Math.min(10, width / 50), label: "weight, w" },
      y: { domain: [0, HIGHEST], ticks: 5, grid: true, label: "expected loss (nats)" },
      marks: [
        Plot.ruleY([0]),
        Plot.line(before, { ...at, stroke: PLAIN, strokeWidth: 2, clip: true }),
        Plot.line(after, { ...at, stroke: NOISY, strokeWidth: 2.5, strokeDasharray: "8 3", clip: true }),
        dot(plain, PLAIN),
        ...(best.weight <= WIDEST ? [dot(best, NOISY)] : []),
        Plot.ruleX([yours], { x: "weight", y: "loss", stroke: OWN }),
        Plot.dot([yours], { ...at, fill: OWN, symbol: "diamond", r: 7 }),
      ],
    };
  }

  function describe({ b, sigma, plain, best, own }) {
    return (
      `Two curves of the expected loss over the weight, for data of spread ${number(sigma, 2)}. ` +
      `Without noise the lowest point is at ${number(plain.weight, 2)}, with a loss of ` +
      `${number(plain.loss, 3)}. With noise of scale ${number(b, 1)} it is at ` +
      `${number(best.weight, 2)}, with a loss of ${number(best.loss, 3)}. A diamond marks your ` +
      `weight, ${number(own.weight, 1)}, with a loss of ${number(own.loss, 3)} under the noise.`
    );
  }

  function facts({ plain, best, own }) {
    return [
      ["best weight without noise, 2/σ²", number(plain.weight, 2)],
      ["best weight for the noise", number(best.weight, 2)],
      ["least expected loss under noise", `${number(best.loss, 4)} nats`],
      ["expected loss of your weight", `${number(own.loss, 4)} nats`],
    ];
  }

  dpnotes.figures["expected-loss"] = {
    controls: [
      {
        name: "b",
        label: "b, the scale of the noise on the weight",
        steps: d3.range(0, 31).map((step) => step / 10),
        start: 1,
        write: (b) => number(b, 1),
      },
      {
        name: "sigma",
        label: "σ, the spread of the data",
        steps: d3.range(14, 31).map((step) => step / 20),
        start: 1,
        write: (sigma) => number(sigma, 2),
      },
      {
        name: "w",
        label: "w, your weight before the noise comes",
        steps: d3.range(-10, 10 * WIDEST + 1).map((step) => step / 10),
        start: 2,
        write: (w) => number(w, 1),
      },
    ],
    legend: [
      [PLAIN, "without noise"],
      [NOISY, "expected under noise"],
      [OWN, "your weight"],
    ],
    measure,
    facts,
    describe,
    plot,
  };
})();
