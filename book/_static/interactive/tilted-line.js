// Two lines through the origin, each with the least risk on false labels: one for a loss that is
// not symmetric, one for a loss that is. All is exact: the four points and their mirror images are
// the whole population.
(() => {
  const { number, logarithmicSteps } = dpnotes;
  const SIGMOID = "var(--colour-1)";
  const LOGISTIC = "var(--colour-2)";
  const FOUR = [
    [6, 0],
    [1, 3],
    [1, -1],
    [1, -1],
  ];
  // Two lie on one spot: they are drawn apart.
  const DRAWN = FOUR.map(([x, y], i) => [x + [0, 0, -0.3, 0.3][i], y]);
  // Directions of the weights, in twentieths of a degree.
  const TURNS = d3.range(-1800, 1801).map((step) => step / 20);
  const WIDE = 7;
  const HIGH = 4;

  const losses = {
    logistic: (z) => Math.max(0, -z) + Math.log1p(Math.exp(-Math.abs(z))),
    sigmoid: (z) => 1 / (1 + Math.exp(z)),
  };

  const along = (turn) => [Math.cos((turn * Math.PI) / 180), Math.sin((turn * Math.PI) / 180)];
  const margins = (turn, length) =>
    FOUR.map(([x, y]) => length * (x * along(turn)[0] + y * along(turn)[1]));

  function risk(loss, turn, p, length) {
    return d3.mean(margins(turn, length), (z) => p * loss(z) + (1 - p) * loss(-z));
  }

  function best(name, p, length) {
    const turn = TURNS[d3.minIndex(TURNS, (each) => risk(losses[name], each, p, length))];
    return { turn, lost: d3.sum(margins(turn, length), (z) => z <= 0) };
  }

  function measure({ p, length }) {
    const [logistic, sigmoid] = ["logistic", "sigmoid"].map((name) => best(name, p, length));
    return { p, length, logistic, sigmoid, before: best("logistic", 1, length) };
  }

  // The line on which the score is zero stands across the weights.
  function line({ turn }, stroke, more = {}) {
    const [x, y] = along(turn);
    const ends = [-9, 9].map((far) => [-far * y, far * x]);
    return Plot.line(ends, { stroke, strokeWidth: 2.5, clip: true, ...more });
  }

  function plot({ logistic, sigmoid, before }, width) {
    const mirror = DRAWN.map(([x, y]) => [-x, -y]);
    const points = { fontSize: 24, fill: "currentColor" };
    return {
      height: Math.max(230, Math.min(360, (width * HIGH) / WIDE)),
      marginLeft: 44,
      marginBottom: 42,
      x: { domain: [-WIDE, WIDE], ticks: 7, label: "first measurement" },
      y: { domain: [-HIGH, HIGH], ticks: 5, grid: true, label: "second measurement" },
      marks: [
        line(before, "currentColor", { strokeWidth: 1, strokeDasharray: "3 3" }),
        line(sigmoid, SIGMOID),
        line(logistic, LOGISTIC, { strokeDasharray: "8 3" }),
        Plot.text(DRAWN, { ...points, text: () => "+" }),
        Plot.text(mirror, { ...points, text: () => "−" }),
      ],
    };
  }

  const degrees = (turn) => `${number(turn, 1).replace("-", "−").replace(/^−0.0$/, "0.0")}°`;
  const wrong = ({ lost }) => `${lost} of 4`;

  function describe({ p, length, logistic, sigmoid, before }) {
    return (
      `Four positive points, their mirror images, and three lines through the origin, for labels ` +
      `kept with probability ${number(p, 2)} and weights of length ${number(length, 2)}. With true ` +
      `labels the weights of the logistic loss have the direction ${degrees(before.turn)}; with ` +
      `reported ones ${degrees(logistic.turn)}, and ${wrong(logistic)} positives are on the wrong ` +
      `side. With the sigmoid loss the direction is ${degrees(sigmoid.turn)}, and ` +
      `${wrong(sigmoid)} are on the wrong side.`
    );
  }

  function facts({ p, logistic, sigmoid }) {
    return [
      ["what a label costs, ε = ln(p / (1 − p))", p < 1 ? number(Math.log(p / (1 - p)), 2) : "no limit"],
      ["logistic loss: direction of the weights", degrees(logistic.turn)],
      ["logistic loss: positives on the wrong side", wrong(logistic)],
      ["sigmoid loss: direction of the weights", degrees(sigmoid.turn)],
      ["sigmoid loss: positives on the wrong side", wrong(sigmoid)],
    ];
  }

  dpnotes.figures["tilted-line"] = {
    controls: [
      {
        name: "p",
        label: "p, the probability that a label is kept",
        steps: d3.range(52, 101).map((step) => step / 100),
        start: 0.75,
        write: (p) => number(p, 2),
      },
      {
        name: "length",
        label: "‖w‖, the length of the weights",
        steps: logarithmicSteps(0.05, 4, 10),
        start: 2,
        write: (length) => number(length, 2),
      },
    ],
    legend: [
      [SIGMOID, "sigmoid loss (symmetric)"],
      [LOGISTIC, "logistic loss (dashes); dotted: with true labels"],
    ],
    measure,
    facts,
    describe,
    plot,
  };
})();
