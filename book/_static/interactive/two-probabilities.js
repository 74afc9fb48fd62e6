// What the two probabilities of unary encoding cost, and how far off a bar is.
(() => {
  const { number } = dpnotes;
  const OWN = "var(--colour-1)";
  const OPTIMIZED = "var(--colour-2)";
  const SYMMETRIC = "var(--colour-3)";
  const PEOPLE = 10_000;

  // The standard deviation of the count of a rare answer; for an epsilon it depends on p alone.
  const deviation = (p, epsilon) =>
    Math.sqrt((PEOPLE * Math.exp(epsilon)) / (p * (1 - p))) / Math.expm1(epsilon);

  const symmetricP = (epsilon) => 1 / (1 + Math.exp(-epsilon / 2));

  function measure({ p, q }) {
    const epsilon = Math.log(p / (1 - p)) + Math.log((1 - q) / q);
    const [own, optimized, symmetric] = [p, 0.5, symmetricP(epsilon)].map((at) => ({
      epsilon,
      sd: deviation(at, epsilon),
    }));
    return { p, q, epsilon, own, optimized, symmetric };
  }

  const curve = (pOf) =>
    d3.range(0.03, 9.5, 0.03).map((epsilon) => ({ epsilon, sd: deviation(pOf(epsilon), epsilon) }));
  const best = curve(() => 0.5);
  const even = curve(symmetricP);

  function plot({ own }, width) {
    const at = { x: "epsilon", y: "sd" };
    const line = { ...at, strokeWidth: 2, clip: true };
    return {
      height: Math.max(250, Math.min(340, width / 2)),
      marginLeft: 52,
      marginBottom: 42,
      x: { domain: [0, 9.5], ticks: 8, label: "privacy cost, ε" },
      y: {
        type: "log",
        domain: [8, 8000],
        ticks: [10, 100, 1000],
        tickFormat: (sd) => number(sd),
        grid: true,
        label: "standard deviation (people of 10,000)",
      },
      marks: [
        Plot.line(even, { ...line, stroke: SYMMETRIC, strokeDasharray: "6 3" }),
        Plot.line(best, { ...line, stroke: OPTIMIZED }),
        Plot.ruleX([own], { x: "epsilon", y1: "sd", y2: 8, stroke: OWN, strokeDasharray: "2 3" }),
        Plot.dot([own], { ...at, fill: OWN, r: 6 }),
      ],
    };
  }

  const facts = ({ epsilon, own, optimized, symmetric }) => [
    ["privacy cost, ε", number(epsilon, 3)],
    ["standard deviation of a rare answer", `${number(own.sd, 1)} people`],
    ["the same ε, optimized: p = ½", `${number(optimized.sd, 1)} people`],
    ["the same ε, symmetric: p = 1 − q", `${number(symmetric.sd, 1)} people`],
  ];

  function describe({ p, q, epsilon, own, optimized, symmetric }) {
    return (
      `The standard deviation of the count of a rare answer among 10,000 people against epsilon: ` +
      `two curves that fall, the optimized choice of p and q below the symmetric one, and a point ` +
      `for p = ${number(p, 2)} and q = ${number(q, 2)}. It costs ${number(epsilon, 3)} and has ` +
      `${number(own.sd, 1)} people; at this cost the optimized choice has ` +
      `${number(optimized.sd, 1)} and the symmetric one ${number(symmetric.sd, 1)}.`
    );
  }

  const hundredths = (low, high) => d3.range(low, high + 1).map((step) => step / 100);

  dpnotes.figures["two-probabilities"] = {
    controls: [
      {
        name: "p",
        label: "p, a true 1 is sent as a 1",
        steps: hundredths(50, 99),
        start: 0.75,
        write: (p) => number(p, 2),
      },
      {
        name: "q",
        label: "q, a true 0 is sent as a 1",
        steps: hundredths(1, 49),
        start: 0.25,
        write: (q) => number(q, 2),
      },
    ],
    legend: [
      [OWN, "your p and q"],
      [OPTIMIZED, "optimized, p = ½: the least"],
      [SYMMETRIC, "symmetric, p = 1 − q"],
    ],
    measure,
    facts,
    describe,
    plot,
  };
})();
