// Records on a line of scores: their ROC curve, how far one can move its area, and the noise on it.
(() => {
  const { element, logarithmicSteps, number } = dpnotes;
  const POSITIVE = "var(--colour-2)";
  const NEGATIVE = "var(--colour-1)";
  const EXACT = "var(--colour-3)";
  const PUBLISHED = "var(--colour-4)";
  const HELP = "private-auc-help";
  const HIGHEST = 100;
  const KEYS = {
    ArrowLeft: (score) => score - 1,
    ArrowDown: (score) => score - 1,
    ArrowRight: (score) => score + 1,
    ArrowUp: (score) => score + 1,
    PageDown: (score) => score - 10,
    PageUp: (score) => score + 10,
    Home: () => 0,
    End: () => HIGHEST,
  };
  const START = [
    ...[30, 44, 62, 84, 94].map((score) => ({ score, positive: true })),
    ...[8, 22, 36, 50, 76].map((score) => ({ score, positive: false })),
  ];

  // A dot that is moved by pointer or keys; a click, or the space bar, changes its class.
  function dot(record, place, track, change) {
    const made = element("div", {
      class: "dot",
      role: "slider",
      tabindex: 0,
      "aria-describedby": HELP,
      "aria-valuemin": 0,
      "aria-valuemax": HIGHEST,
    });

    function show() {
      const { score, positive } = record;
      made.classList.toggle("positive", positive);
      made.textContent = positive ? "+" : "−";
      made.style.setProperty("--score", score / HIGHEST);
      made.setAttribute("aria-label", `record ${place}, ${positive ? "positive" : "negative"}`);
      made.setAttribute("aria-valuenow", score);
      made.setAttribute("aria-valuetext", `score ${number(score / HIGHEST, 2)}`);
    }

    function update(changes) {
      Object.assign(record, changes);
      record.score = Math.max(0, Math.min(HIGHEST, Math.round(record.score)));
      show();
      change();
    }

    const toggle = () => update({ positive: !record.positive });

    made.addEventListener("keydown", (event) => {
      if (event.key === " " || event.key === "Enter") toggle();
      else if (event.key in KEYS) update({ score: KEYS[event.key](record.score) });
      else return;
      event.preventDefault();
    });

    let from = null;
    let moved = false;
    made.addEventListener("pointerdown", (event) => {
      made.setPointerCapture(event.pointerId);
      from = { x: event.clientX, score: record.score };
      moved = false;
    });
    made.addEventListener("pointermove", (event) => {
      if (from === null) return;
      const shift = event.clientX - from.x;
      // A finger that taps is never quite still.
      moved ||= Math.abs(shift) > 3;
      const step = (track.clientWidth - made.offsetWidth) / HIGHEST;
      if (moved) update({ score: from.score + shift / step });
    });
    made.addEventListener("lostpointercapture", () => (from = null));
    made.addEventListener("click", () => moved || toggle());
    show();
    return made;
  }

  function board({ label, start }, change) {
    const records = start.map((record) => ({ ...record }));
    const track = element("div", { class: "track" });
    track.append(...records.map((record, k) => dot(record, k + 1, track, change)));
    const help = element("p", { id: HELP }, label);
    const ends = element("div", { class: "ends", "aria-hidden": "true" });
    ends.append(...["score 0", "score 1"].map((text) => element("span", {}, text)));
    return { row: element("div", { class: "board" }, help, track, ends), value: () => records };
  }

  // Down through the scores; records of equal score pass the threshold together.
  function rocCurve(positives, negatives) {
    const thresholds = d3.sort(new Set([...positives, ...negatives]), d3.descending);
    const share = (scores, least) => d3.mean(scores, (score) => (score >= least ? 1 : 0));
    const points = thresholds.map((t) => ({ x: share(negatives, t), y: share(positives, t) }));
    return [{ x: 0, y: 0 }, ...points];
  }

  function area(positives, negatives) {
    if (positives.length === 0 || negatives.length === 0) return 0.5;
    const wins = d3.cross(positives, negatives, (p, n) => (p > n ? 1 : p === n ? 0.5 : 0));
    return d3.mean(wins);
  }

  function smoothSensitivity(smaller, beta) {
    return Math.max(1 / Math.max(smaller, 1), Math.exp(-beta * Math.max(smaller - 1, 0)));
  }

  // As best_beta of dpnotes: where the noise is smallest for a public guess of the smaller class.
  function bestBeta(epsilon, guess) {
    const ratio = 2 * guess - 1;
    const root = Math.hypot(ratio * Math.sinh(epsilon), 1);
    const lowest = Math.log((ratio * Math.cosh(epsilon) + root) / (ratio + 1));
    const enough = Math.log(guess) / Math.max(guess - 1, 1);
    const flat = Math.log(2 * Math.cosh(epsilon) - 1);
    return Math.min(Math.max(flat, Math.min(lowest, enough)), Math.LN2);
  }

  // As cauchy_scale of dpnotes, from the hyperbolic distance between two Cauchy distributions.
  function cauchyScale(epsilon, beta) {
    const spread = 4 * Math.sinh((epsilon + beta) / 2) * Math.sinh((epsilon - beta) / 2);
    return Math.max(1 / (2 * Math.sinh(epsilon / 2)), Math.sqrt(Math.exp(-beta) / spread));
  }

  function noise(factor, beta, smaller, auc) {
    const smooth = smoothSensitivity(smaller, beta);
    const scale = factor * smooth;
    // Half of all Cauchy noise is within its scale.
    const interval = [Math.max(0, auc - scale), Math.min(1, auc + scale)];
    return { beta, smooth, scale, interval };
  }

  function measure({ records, copies, epsilon }) {
    const scores = (wanted) =>
      records.filter(({ positive }) => positive === wanted).map(({ score }) => score);
    const [positives, negatives] = [scores(true), scores(false)];
    const [n, m] = [copies * positives.length, copies * negatives.length];
    const smaller = Math.min(n, m);
    const auc = area(positives, negatives);
    const guess = Math.max(1, Math.floor((n + m) / 4));
    const beta = bestBeta(epsilon, guess);
    return {
      n,
      m,
      epsilon,
      auc,
      guess,
      curve: smaller > 0 ? rocCurve(positives, negatives) : [],
      local: 1 / Math.max(smaller, 1),
      exact: noise(cauchyScale(epsilon, beta), beta, smaller, auc),
      published: noise(6 / epsilon, epsilon / 6, smaller, auc),
    };
  }

  function interval({ interval: [low, high] }, x, stroke) {
    return Plot.ruleX([x], { y1: low, y2: high, stroke, strokeWidth: 8 });
  }

  function plot({ curve, auc, exact, published }, width) {
    const missing = ["one class is missing:", "AUC ½ by convention"].join("\n");
    return {
      height: Math.max(230, Math.min(340, width * 0.6)),
      marginLeft: 48,
      marginBottom: 42,
      x: {
        // To the right of the curve there is room for the two bars.
        domain: [0, 1.4],
        ticks: [0, 0.5, 1],
        label: "false positive rate",
        labelAnchor: "left",
      },
      y: { domain: [0, 1], ticks: 5, grid: true, label: "true positive rate; AUC" },
      marks: [
        Plot.areaY(curve, { x: "x", y1: 0, y2: "y", fillOpacity: 0.12 }),
        Plot.link([0], { x1: 0, y1: 0, x2: 1, y2: 1, strokeOpacity: 0.5, strokeDasharray: "2 4" }),
        Plot.line(curve, { x: "x", y: "y", strokeWidth: 2.5 }),
        Plot.text(curve.length ? [] : [missing], { x: 0.5, y: 0.8 }),
        Plot.ruleY([auc], { x1: 1, x2: 1.4, strokeDasharray: "5 3" }),
        interval(exact, 1.13, EXACT),
        interval(published, 1.27, PUBLISHED),
        Plot.dot([1.13, 1.27], { x: (x) => x, y: auc, r: 3, fill: "currentColor" }),
        Plot.ruleX([0, 1]),
        Plot.ruleY([0]),
      ],
    };
  }

  function describe({ n, m, epsilon, auc, curve, exact, published }) {
    const range = ({ interval }) => interval.map((end) => number(end, 3)).join(" to ");
    const shape = curve.length
      ? `The ROC curve of ${number(n)} positive and ${number(m)} negative records, as stairs of ` +
        `${curve.length - 1} thresholds; the area below it is ${number(auc, 3)}. `
      : `No ROC curve: all ${number(n + m)} records are of one class; the AUC counts as 0.500. `;
    return (
      `${shape}Beside it two bars around the AUC, which hold half of all releases at ε = ` +
      `${epsilon}: ${range(exact)} with exact Cauchy noise, ${range(published)} with the noise of 2007.`
    );
  }

  const digits = (value) => value.toLocaleString("en", { maximumSignificantDigits: 3 });

  function facts({ n, m, auc, local, exact, published }) {
    return [
      ["AUC", number(auc, 3)],
      ["positive and negative records, n and m", `${number(n)} and ${number(m)}`],
      ["local sensitivity, 1 / min(n, m)", digits(local)],
      [`smooth sensitivity at β = ${digits(exact.beta)}`, digits(exact.smooth)],
      ["scale of exact Cauchy noise", digits(exact.scale)],
      ["scale of the noise of 2007, 6S/ε", digits(published.scale)],
    ];
  }

  dpnotes.figures["private-auc"] = {
    controls: [
      {
        name: "records",
        label:
          "Drag a dot, or move it with the arrow keys, to change the score of a record. Click " +
          "it, or press space, to change its class.",
        make: board,
        start: START,
      },
      {
        name: "epsilon",
        label: "ε of the release",
        steps: logarithmicSteps(0.1, 10, 20),
        start: 1,
        write: String,
      },
      {
        name: "copies",
        label: "records that each dot stands for",
        steps: [1, 2, 3, 5, 10, 20, 30, 50, 100, 200, 300, 500, 1000],
        start: 1,
        write: (copies) => number(copies),
      },
    ],
    legend: [
      [POSITIVE, "positive record"],
      [NEGATIVE, "negative record"],
      [EXACT, "middle half of the releases, exact Cauchy noise"],
      [PUBLISHED, "the same with the noise of 2007, 6S/ε wide"],
    ],
    measure,
    facts,
    describe,
    plot,
  };
})();
