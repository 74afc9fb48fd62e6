// Four hundred people lie now and then; the estimate of how many say yes settles all the same.
(() => {
  const { number, percent } = dpnotes;
  const ESTIMATE = "var(--colour-1)";
  const TRUTH = "var(--colour-2)";
  const BAND = "var(--colour-3)";
  const PEOPLE = 400;
  const YES = 100;
  const ROWS = 8;
  const LN3 = Math.log(3);

  // Uniform numbers that are the same on every machine (the generator is called mulberry32).
  function uniforms(seed, count) {
    let state = seed;
    return d3.range(count).map(() => {
      state = (state + 0x6d2b79f5) | 0;
      let mixed = Math.imul(state ^ (state >>> 15), state | 1);
      mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
      return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
    });
  }

  // Who truly says yes: always the same people, in no order.
  const places = uniforms(1, PEOPLE);
  const limit = d3.sort(places)[YES];
  const truths = places.map((place) => Number(place < limit));

  function measure({ epsilon, n, survey }) {
    const keep = 1 / (1 + Math.exp(-epsilon));
    const coins = uniforms(503 * survey, PEOPLE);
    const reports = truths.map((truth, person) => (coins[person] < keep ? truth : 1 - truth));
    const [reported, actual] = [reports, truths].map((answers) => Array.from(d3.cumsum(answers)));
    const steps = d3.range(n).map((person) => {
      const asked = person + 1;
      const share = actual[person] / asked;
      const estimate = (reported[person] / asked - (1 - keep)) / (2 * keep - 1);
      const sd = Math.sqrt((keep * (1 - keep)) / asked) / (2 * keep - 1);
      return { asked, share, estimate, sd };
    });
    const last = steps[n - 1];
    return {
      epsilon,
      n,
      keep,
      reports,
      steps,
      reported: reported[n - 1],
      actual: actual[n - 1],
      estimate: n * last.estimate,
      sd: n * last.sd,
    };
  }

  function plot({ n, reports, steps }, width) {
    // The people stand below the curves, each where the curve has come to when they are asked.
    const people = reports.map((report, person) => ({
      place: person - (person % ROWS) + ROWS / 2,
      row: -0.66 - 0.045 * (person % ROWS),
      report,
      asked: person < n,
    }));
    const radius = Math.max(1.6, width / 280);
    const dots = { x: "place", y: "row", r: radius, symbol: "square" };
    const line = { x: "asked", strokeWidth: 2, clip: true };
    return {
      height: Math.max(300, Math.min(400, width / 1.8)),
      marginLeft: 48,
      marginBottom: 42,
      x: { domain: [0, PEOPLE], ticks: Math.min(8, width / 70), label: "people asked, n" },
      y: {
        domain: [-1.02, 1],
        ticks: [-0.5, -0.25, 0, 0.25, 0.5, 0.75, 1],
        tickFormat: (share) => `${number(100 * share)} %`,
        label: "share that truly says yes",
      },
      marks: [
        Plot.areaY(steps, {
          x: "asked",
          y1: ({ share, sd }) => Math.max(-0.6, share - 2 * sd),
          y2: ({ share, sd }) => share + 2 * sd,
          fill: BAND,
          fillOpacity: 0.2,
          clip: true,
        }),
        Plot.ruleY([0]),
        Plot.line(steps, { ...line, y: "share", stroke: TRUTH, strokeDasharray: "6 3" }),
        Plot.line(steps, { ...line, y: ({ estimate }) => Math.max(-0.6, estimate), stroke: ESTIMATE }),
        Plot.dot(people.filter(({ asked }) => !asked), { ...dots, fill: "currentColor", fillOpacity: 0.12 }),
        Plot.dot(people.filter(({ asked }) => asked), {
          ...dots,
          fill: ({ report }) => (report ? ESTIMATE : "currentColor"),
          fillOpacity: ({ report }) => (report ? 1 : 0.3),
        }),
      ],
    };
  }

  const facts = ({ n, keep, reported, actual, estimate, sd }) => [
    ["a report is true, p", percent(keep)],
    ["people who report yes", `${reported} of ${n}`],
    ["people who truly say yes", `${actual} of ${n}`],
    ["estimate", number(estimate, 1)],
    ["its standard deviation", number(sd, 1)],
  ];

  function describe({ n, keep, reported, actual, estimate, sd }) {
    return (
      `The estimated share of people who truly say yes, after each of ${n} people who tell the ` +
      `truth with probability ${number(keep, 3)}. ${reported} report yes and ${actual} truly say ` +
      `yes; the estimate has come to ${number(estimate, 1)} people, with standard deviation ` +
      `${number(sd, 1)}. A band of two standard deviations around the truth narrows as more are asked.`
    );
  }

  dpnotes.figures["settling-estimate"] = {
    controls: [
      {
        name: "epsilon",
        label: "ε, the privacy cost of a report",
        steps: [0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.7, 0.85, 1, LN3, 1.25, 1.5, 2, 2.5, 3, 4, 5],
        start: LN3,
        write: (epsilon) => (epsilon === LN3 ? "ln 3" : String(epsilon)),
      },
      {
        name: "n",
        label: "n, the number of people asked",
        steps: d3.range(10, PEOPLE + 1, 10),
        start: 200,
        write: (n) => number(n),
      },
      {
        name: "survey",
        label: "throw the coins again",
        steps: d3.range(1, 41),
        start: 1,
        write: (survey) => `no. ${survey}`,
      },
    ],
    legend: [
      [ESTIMATE, "the estimate so far (below: who reports yes)"],
      [TRUTH, "the truth about those asked"],
      [BAND, "two standard deviations around it"],
    ],
    measure,
    facts,
    describe,
    plot,
  };
})();
