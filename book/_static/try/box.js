// A box to try a mechanism in: an editor, buttons, what was printed, and the witness of an audit.
import * as engine from "./engine.js";

const HOME = new URL("engine/", import.meta.url).href;
const KEPT = "dpnotes-python";
const LONGEST = 60_000;

function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...children);
  return made;
}

// The programs of a box are in its page, with what they print, for whoever has no scripts.
function programs(box) {
  return [...box.querySelectorAll(".program")].map((still) => ({
    still,
    title: still.dataset.title,
    code: still.querySelector("pre.code").textContent.trimEnd() + "\n",
    printed: still.querySelector("pre.printed").textContent,
  }));
}

async function isKept(file) {
  try {
    return Boolean(await (await caches.open(KEPT)).match(HOME + file));
  } catch {
    return false;
  }
}

let boxes = 0;

export async function show(box) {
  const { megabytes, file } = box.dataset;
  if (!megabytes) return;
  const number = (boxes += 1), all = programs(box);
  let program = all[0];

  const id = `try-it-${number}`;
  // Where nothing but a thumb moves the text, a long line is folded, so that its end is seen.
  const wrap = matchMedia("(pointer: coarse)").matches ? "soft" : "off";
  const editor = element("textarea", { id, wrap, spellcheck: "false", autocapitalize: "off", autocomplete: "off" });
  const choice = element("select", { id: `${id}-which` }, ...all.map(({ title }, place) =>
    element("option", { value: place }, title)));
  const which = element("p", { class: "which" },
    element("label", { for: choice.id }, "Start from "), choice);
  const label = element("label", { for: id }, "Python, to edit");
  const runs = element("button", { type: "button", class: "run" });
  const stops = element("button", { type: "button", class: "stop" }, "Stop");
  const again = element("button", { type: "button", class: "again" }, "Undo my changes");
  const bar = element("progress", { max: megabytes * 1e6, "aria-label": "loaded" });
  const state = element("p", { class: "state", role: "status" });
  const output = element("pre", {
    class: "output", tabindex: "0", role: "region", "aria-label": "What the program printed",
  });
  const drawn = element("div", { class: "witness" });
  const parts = all.length > 1 ? [which] : [];
  const buttons = element("div", { class: "buttons" }, runs, stops, again);
  const live = element("div", { class: "live" }, ...parts, label, editor, buttons, bar, state,
    output, drawn);

  // Shows the chosen program as it was left, with what was printed and drawn then.
  function display() {
    const { code, draft = code, printed, left = [printed], witness = [] } = program;
    editor.value = draft;
    editor.rows = draft.split("\n").length;
    output.replaceChildren(...left);
    drawn.replaceChildren(...witness);
  }

  function choose() {
    Object.assign(program, {
      draft: editor.value, left: [...output.childNodes], witness: [...drawn.childNodes],
    });
    program = all[choice.value];
    display();
  }

  // What a program did to Python itself is undone too: the next run starts another one.
  function undo() {
    engine.stop();
    for (const kept of ["draft", "left", "witness"]) delete program[kept];
    display();
    state.textContent = "As it was at first. The next run starts Python afresh.";
  }

  function busy(isBusy) {
    runs.disabled = again.disabled = choice.disabled = isBusy;
    stops.disabled = !isBusy;
    if (!isBusy) bar.hidden = true;
  }

  async function run() {
    let timer, isLate;
    // A button that is disabled loses the keyboard's place; the next one to press takes it.
    const held = document.activeElement === runs;
    busy(true);
    if (held) stops.focus();
    try {
      state.textContent = "Starting Python.";
      bar.value = 0;
      bar.hidden = false;
      await engine.load(HOME, (bytes) => (bar.value = bytes));
      bar.hidden = true;
      runs.textContent = "Run and audit";
      state.textContent = "Running.";
      output.textContent = "";
      drawn.replaceChildren();
      timer = setTimeout(() => {
        isLate = true;
        engine.stop();
      }, LONGEST);
      const began = performance.now();
      const { failed, found } = await engine.run(editor.value, (text, isError) => {
        output.append(isError ? element("span", { class: "error" }, text) : text);
      });
      const seconds = ((performance.now() - began) / 1000).toFixed(1);
      state.textContent = failed ? "The program stopped with an error." : `Done in ${seconds} s.`;
      if (found) drawn.replaceChildren(draw(found));
    } catch (error) {
      state.textContent = isLate ? "Stopped after a minute." : sentence(error);
    }
    clearTimeout(timer);
    const waiting = document.activeElement === stops;
    busy(false);
    if (waiting) runs.focus();
  }

  runs.addEventListener("click", run);
  stops.addEventListener("click", engine.stop);
  again.addEventListener("click", undo);
  choice.addEventListener("change", choose);
  editor.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || !(event.ctrlKey || event.metaKey)) return;
    event.preventDefault();
    if (!runs.disabled) run();
  });
  // Paper has the program as it was edited, and what it printed.
  window.addEventListener("beforeprint", () => {
    for (const { still } of all) still.hidden = still !== program.still;
    program.still.querySelector("pre.code").textContent = editor.value;
    program.still.querySelector("pre.printed").textContent = output.textContent;
  });

  const kept = await isKept(file);
  runs.textContent = kept ? "Run and audit" : `Load Python (${megabytes} MB) and run`;
  state.textContent = kept
    ? "Python is here from before. Below is what the program printed for us."
    : `Runs in your browser and sends nothing. Python is ${megabytes} MB, once, from this site. `
      + "Below is what the program printed for us.";
  choice.value = "0";
  display();
  busy(false);
  box.append(live);
  box.classList.add("alive");
}

function sentence(error) {
  if (error instanceof engine.Stopped) return error.message;
  if (error.old) {
    return "This browser is too old for it: it needs Chrome 137, Firefox 131 or Safari 18.4.";
  }
  return `It did not work: ${error.message}. The next run starts afresh.`;
}

// Two bars, how often the event came on either data set, and how far the claim lets the longer one
// reach.
function draw(found) {
  const { hits, neighbour_hits: others, runs, epsilon, delta, event } = found;
  const [more, fewer] = [Math.max(hits, others), Math.min(hits, others)].map((n) => n / runs);
  const reach = Math.min(1, Math.exp(epsilon) * fewer + delta);
  const percent = (share) => `${(100 * share).toFixed(1)} %`;
  const words = [
    `The event: ${event}.`,
    `It came in ${percent(hits / runs)} of ${runs.toLocaleString("en")} runs on the one data set`,
    `and in ${percent(others / runs)} on its neighbour.`,
    `By the claim the larger share is at most ${percent(reach)} where the smaller is`,
    `${percent(fewer)}, give or take chance.`,
    found.verdict === "violated" ? "That is more than chance: violated." : "Not refuted.",
  ].join(" ");
  const bar = (name, share) => element("div", { class: "bar" },
    element("span", { class: "name" }, name),
    element("span", { class: "lane" },
      element("span", { class: "share", style: `width: ${100 * share}%` }),
      ...(share === more ? [element("span", { class: "reach", style: `left: ${100 * reach}%` })] : [])),
    element("span", { class: "percent" }, percent(share)));
  const picture = element("div", { class: "picture", role: "img", "aria-label": words },
    bar("one data set", hits / runs), bar("its neighbour", others / runs));
  if (found.verdict === "violated") picture.classList.add("violated");
  return element("figure", {}, picture, element("figcaption", {}, words,
    element("br"), element("span", { class: "reach-key" }), " as far as the claim lets it reach"));
}
