// A count with Laplace noise on it, with and without one person, and an attacker who tells them apart.
(() => {
  const { logarithmicSteps, number, percent } = dpnotes;
  const WITH = "var(--colour-2)";
  const WITHOUT = "var(--colour-1)";
  const COUNT = 7840;
  const [LOW, HIGH] = [COUNT - 10, COUNT + 11];

  // The chance that a count with noise of scale 1 / epsilon is at least so much.
  function atLeast(line, count, epsilon) {
    const tail = Math.exp(-epsilon * Math.abs(line - count)) / 2;
    return line > count ? tail : 1 - tail;
  }

  // The density as a share of its peak, so that a broad one can be seen beside a narrow one.
  const height = (x, count, epsilon) => Math.exp(-epsilon * Math.abs(x - count));

  function measure({ epsilon, line }) {
    const rightYes = atLeast(line, COUNT + 1, epsilon);
    const wrongYes = atLeast(line, COUNT, epsilon);
    return {
      epsilon,
      line,
      rightYes,
      wrongYes,
      right: (1 + rightYes - wrongYes) / 2,
      best: 1 - Math.exp(-epsilon / 2) / 2,
      bound: 1 / (1 + Math.exp(-epsilon)),
    };
  }

  function plot({ epsilon, line }, width) {
    const curve = (count, low, high) =>
      d3.sort(new Set([...d3.ticks(LOW, HIGH, 200), COUNT, COUNT + 1, line]))
        .filter((x) => x >= low && x <= high)
        .map((x) => ({ x, y: height(x, count, epsilon) }));
    const at = { x: "x", y: "y" };
    return {
      height: Math.max(230, Math.min(300, width / 2)),
      marginLeft: 48,
      marginBottom: 42,
      x: { domain: [LOW, HIGH], ticks: Math.min(8, width / 70), tickFormat: ",", label: "released count (people)" },
      y: { domain: [0, 1.05], ticks: 5, grid: true, label: "density (share of its peak)" },
      marks: [
        Plot.areaY(curve(COUNT, LOW, line), { ...at, fill: WITHOUT, fillOpacity: 0.25 }),
        Plot.areaY(curve(COUNT + 1, line, HIGH), { ...at, fill: WITH, fillOpacity: 0.25 }),
        Plot.line(curve(COUNT, LOW, HIGH), { ...at, stroke: WITHOUT, strokeWidth: 2 }),
        Plot.line(curve(COUNT + 1, LOW, HIGH), { ...at, stroke: WITH, strokeWidth: 2.5, strokeDasharray: "8 3" }),
        Plot.ruleX([line], { strokeWidth: 2 }),
        Plot.ruleY([0]),
      ],
    };
  }

  function describe({ epsilon, line, rightYes, wrongYes }) {
    return (
      `Two tents of the same shape, one around ${number(COUNT)} and one around ${number(COUNT + 1)} ` +
      `people, for epsilon ${epsilon}. From the line at ${number(line, 1)} on the attacker says yes: ` +
      `${percent(rightYes)} of the second tent and ${percent(wrongYes)} of the first lie there.`
    );
  }

  function facts({ epsilon, rightYes, wrongYes, right, best, bound }) {
    return [
      ["says yes, and it is true", percent(rightYes)],
      ["says yes, and it is false", percent(wrongYes)],
      ["right, at even odds", percent(right)],
      ["right with the best line", percent(best)],
      ["no attacker on any ε-private answer is right more often than", percent(bound)],
      ["largest ratio of the two densities, exp(ε)", number(Math.exp(epsilon), 2)],
    ];
  }

  dpnotes.figures["best-guess"] = {
    controls: [
      {
        name: "epsilon",
        label: "ε, the privacy cost of the count",
        steps: logarithmicSteps(0.05, 5, 20),
        start: 0.5,
        write: String,
      },
      {
        name: "line",
        label: "the attacker says “this person earns a lot” from here on",
        steps: d3.range(2 * LOW, 2 * HIGH + 1).map((half) => half / 2),
        start: COUNT + 4,
        write: (line) => number(line, 1),
      },
    ],
    legend: [
      [WITHOUT, "released, if the person earns little; shaded: the attacker is right"],
      [WITH, "released, if the person earns a lot; shaded: the attacker is right"],
    ],
    measure,
    facts,
    describe,
    plot,
  };
})();
