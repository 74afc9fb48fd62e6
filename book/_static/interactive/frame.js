// What all interactive figures share: sliders, a plot that says in words what it shows, and the
// numbers behind it. A figure adds itself to dpnotes.figures with these parts:
//
//   controls           {name, label, steps, start, write}; write turns a step into text. A slider
//                      each, or what `make(control, change)` returns: {row, value} as below
//   legend             [colour, text] for each colour that means something
//   measure(values)    all that is computed from the values of the sliders
//   facts(measured)    [name, text] for each number to be read
//   describe(measured) the text that stands in for the picture
//   plot(measured, width)  options for Plot.plot
window.dpnotes = (() => {
  function element(tag, attributes = {}, ...children) {
    const made = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
    made.append(...children);
    return made;
  }

  function slider(control, change) {
    const { label, steps, start, write } = control;
    const input = element("input", { type: "range", min: 0, max: steps.length - 1, step: 1 });
    input.value = steps.indexOf(start);
    const shown = element("span", { class: "value", "aria-hidden": "true" });
    const update = () => {
      const text = write(steps[input.valueAsNumber]);
      shown.textContent = text;
      input.setAttribute("aria-valuetext", text);
    };
    input.addEventListener("input", () => {
      update();
      change();
    });
    update();
    const row = element("div", { class: "control" }, element("label", {}, label, input), shown);
    return { row, value: () => steps[input.valueAsNumber] };
  }

  function choice(control, change) {
    const { label, steps, start } = control;
    const options = steps.map((step) => element("option", {}, step));
    const select = element("select", {}, ...options);
    select.value = start;
    select.addEventListener("change", change);
    const row = element("div", { class: "control" }, element("label", {}, label, select));
    return { row, value: () => select.value };
  }

  function key(legend) {
    const entries = legend.map(([colour, text]) => {
      const swatch = element("span", { class: "swatch", style: `background: ${colour}` });
      return element("li", {}, swatch, text);
    });
    return element("ul", { class: "key" }, ...entries);
  }

  function table(facts) {
    const rows = facts.map(([name, text]) =>
      element("div", {}, element("dt", {}, name), element("dd", {}, text)),
    );
    return element("dl", {}, ...rows);
  }

  function show(box, figure) {
    const canvas = element("div", { class: "canvas" });
    const read = element("div", { class: "facts" });
    const spoken = element("div", { class: "spoken", role: "status" });
    let measured, later;

    function draw() {
      const width = canvas.clientWidth;
      if (width === 0) return;
      const options = figure.plot(measured, width);
      const ariaLabel = figure.describe(measured);
      const style = { background: "transparent", fontSize: "13px", fontFamily: "inherit" };
      const picture = Plot.plot({ width, ariaLabel, style, ...options });
      // One picture with one text: names of its parts would be lost inside it, and say nothing.
      for (const part of picture.querySelectorAll("[aria-label]")) part.removeAttribute("aria-label");
      picture.setAttribute("role", "img");
      canvas.replaceChildren(picture);
    }

    function change() {
      const values = controls.map(([name, { value }]) => [name, value()]);
      measured = figure.measure(Object.fromEntries(values));
      read.replaceChildren(table(figure.facts(measured)));
      draw();
    }

    // Said once, when the reader pauses: every step of a drag would be a flood.
    function announce() {
      clearTimeout(later);
      later = setTimeout(() => {
        const facts = figure.facts(measured).map(([name, text]) => `${name}: ${text}`);
        spoken.textContent = facts.join("; ");
      }, 700);
    }

    function react() {
      change();
      announce();
    }

    const controls = figure.controls.map((control) => {
      const make = control.make ?? slider;
      return [control.name, make(control, react)];
    });
    const rows = controls.map(([, { row }]) => row);
    box.replaceChildren(...rows, key(figure.legend), canvas, read, spoken);
    change();
    // A phone that is turned, or a sidebar that opens, leaves another width.
    new ResizeObserver(draw).observe(canvas);
  }

  // Even steps on a logarithmic scale, each rounded to `digits` significant digits.
  function logarithmicSteps(low, high, perDecade = 40, digits = 2) {
    const count = Math.floor(Math.log10(high / low) * perDecade);
    const steps = Array.from({ length: count + 1 }, (_, k) => low * 10 ** (k / perDecade));
    return [...new Set([...steps, high].map((step) => Number(step.toPrecision(digits))))];
  }

  function number(value, decimals = 0) {
    const digits = { minimumFractionDigits: decimals, maximumFractionDigits: decimals };
    return value.toLocaleString("en", digits);
  }

  const percent = (value, decimals = 1) => `${number(100 * value, decimals)} %`;

  // 1 - exp(logFailure) as text, which keeps its meaning where a percentage would round to 100.
  function nearlyOne(logFailure) {
    if (logFailure > Math.log(5e-5)) return percent(-Math.expm1(logFailure), 2);
    const exponent = Math.floor(logFailure / Math.LN10);
    const leading = number(Math.exp(logFailure - exponent * Math.LN10), 1);
    const raised = String(-exponent).replace(/\d/g, (digit) => "⁰¹²³⁴⁵⁶⁷⁸⁹"[digit]);
    return `1 − ${leading} × 10⁻${raised}`;
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

  return {
    figures: {}, element, show, choice, logarithmicSteps, logNormal, number, percent, nearlyOne,
  };
})();
