// A price drawn by the exponential mechanism, and how little one fan moves it.
(() => {
  const { logarithmicSteps, number, percent } = dpnotes;
  const YOURS = "var(--colour-1)";
  const OTHER = "var(--colour-2)";
  const PRICES = d3.range(1, 31).map((step) => step / 2);
  const HIGHEST = 15;
  // Of 300 fans: who pays up to 4, up to 8 and up to 12 euros.
  const LIMITS = [4, 8, 12];
  const SHARES = [120 / 300, 140 / 300, 40 / 300];
  // In the neighbouring data the fan whose limit can be moved pays this.
  const USUAL = 8;

  // Revenue of each price when one of the fans who pay up to 8 has another limit instead.
  function revenues(fans, limit) {
    return PRICES.map((price) => {
      const crowd = d3.sum(LIMITS, (most, group) => (most >= price ? fans * SHARES[group] : 0));
      return price * (crowd - (USUAL >= price) + (limit >= price));
    });
  }

  function logProbabilities(revenue, epsilon) {
    const best = d3.max(revenue);
    const logs = revenue.map((r) => (epsilon * (r - best)) / (2 * HIGHEST));
    const logTotal = Math.log(d3.sum(logs, Math.exp));
    return logs.map((log) => log - logTotal);
  }

  function measure({ epsilon, fans, limit }) {
    const revenue = revenues(fans, limit);
    const logs = logProbabilities(revenue, epsilon);
    const logsBefore = logProbabilities(revenues(fans, USUAL), epsilon);
    const [chances, before] = [logs, logsBefore].map((each) => each.map(Math.exp));
    const largest = d3.max(logs, (log, i) => Math.abs(log - logsBefore[i]));
    const share = d3.sum(chances, (chance, i) => chance * revenue[i]) / d3.max(revenue);
    return { epsilon, fans, limit, chances, before, share, largest };
  }

  function plot({ chances, before, limit }, width) {
    const inset = width > 500 ? 1.5 : 0.5;
    const bars = PRICES.map((price, i) => ({
      from: price - 0.25,
      to: price + 0.25,
      chance: chances[i],
      before: before[i],
    }));
    const across = { x1: "from", x2: "to", insetLeft: inset, insetRight: inset };
    return {
      height: Math.max(220, Math.min(300, width / 2)),
      marginLeft: 56,
      marginBottom: 42,
      // Axes that stay: a peak that melts is seen to melt.
      x: { domain: [0, 15.5], ticks: 6, label: "price (euros)" },
      y: { domain: [0, 1], ticks: 5, grid: true, label: "probability" },
      marks: [
        Plot.rectY(bars, { ...across, y: "chance", fill: YOURS }),
        Plot.ruleY(bars, { ...across, y: "before", stroke: OTHER, strokeWidth: 2.5 }),
        Plot.ruleY([0]),
        Plot.dot([limit], { x: (x) => x, y: 0, symbol: "triangle", fill: "currentColor", r: 5 }),
        Plot.ruleX([USUAL + 0.25], { strokeWidth: 1, strokeDasharray: "5 3" }),
        Plot.text([USUAL + 0.25], { x: (x) => x, text: () => "cliff", frameAnchor: "top", dx: 18 }),
      ],
    };
  }

  const beyond = (chances) => d3.sum(chances, (chance, i) => (PRICES[i] > USUAL ? chance : 0));
  const written = (chance) => (chance < 5e-5 ? "under 0.01 %" : percent(chance, 2));

  const facts = ({ chances, share, largest }) => [
    ["probability of the best price, 8 euros", percent(chances[PRICES.indexOf(USUAL)], 2)],
    ["probability of a price beyond the cliff", written(beyond(chances))],
    ["revenue on average, of the best", percent(share, 2)],
    ["largest log-ratio that this fan causes", number(largest, 3)],
  ];

  function describe({ epsilon, fans, limit, chances, largest }) {
    const likeliest = PRICES[d3.maxIndex(chances)];
    return (
      `The probability of each price from 0.50 to 15 euros for ${number(fans)} fans at epsilon ` +
      `${epsilon}. The likeliest is ${number(likeliest, 2)} euros, with ` +
      `${percent(d3.max(chances), 1)}; beyond the cliff at 8 euros lies ` +
      `${written(beyond(chances))} together. With one fan's limit at ${number(limit, 2)} in place ` +
      `of 8 euros no log-probability moves by more than ${number(largest, 3)}.`
    );
  }

  dpnotes.figures["best-price"] = {
    controls: [
      {
        name: "epsilon",
        label: "ε, the privacy parameter",
        steps: logarithmicSteps(0.01, 10, 20),
        start: 1,
        write: String,
      },
      {
        name: "fans",
        label: "n, the number of fans",
        steps: [30, 60, 150, 300, 600, 1500, 3000, 6000, 15_000, 30_000],
        start: 300,
        write: (fans) => number(fans),
      },
      {
        name: "limit",
        label: "one fan's limit (euros)",
        steps: d3.range(0, 31).map((step) => step / 2),
        start: 12,
        write: (limit) => number(limit, 2),
      },
    ],
    legend: [
      [YOURS, "with this fan's limit"],
      [OTHER, "with this fan at 8 euros"],
      ["currentColor", "this fan's limit"],
    ],
    measure,
    facts,
    describe,
    plot,
  };
})();
