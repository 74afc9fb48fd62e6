// A box that scrolls must be reachable by keyboard, and a table or an output says that there is more of it.
document.addEventListener("DOMContentLoaded", () => {
  const boxes =
    ".cell_output pre, .cell_input pre, .cell_output, .output.text_html, .pst-scrollable-table-container, div.math";
  const words = document.documentElement.lang.startsWith("zh") ? "左右滑动" : "slide";
  // What has columns, seen in two lines or more, keeps its lines; whatever else is printed may go on below.
  for (const text of document.querySelectorAll(".cell_output pre")) {
    if ((text.textContent.match(/^.*\S {2,}\S|^ +\S/gm) ?? []).length < 2) text.classList.add("flows");
  }
  for (const cell of document.querySelectorAll(".cell_output td")) {
    if (/^[-−+]?[\d.]+(e-?\d+|\s±\s[\d.]+)$/.test(cell.textContent.trim())) cell.classList.add("unbroken");
  }
  const mark = (box) => {
    const hidden = box.scrollWidth - box.clientWidth;
    if (hidden > 0 && !box.hasAttribute("tabindex")) box.tabIndex = 0;
    if (!box.querySelector("table") && !box.matches(".cell_output pre")) return;
    const cue = box.previousElementSibling?.matches(".slide-cue") ? box.previousElementSibling : null;
    if (hidden <= 8) return cue?.remove();  // no more than an edge
    if (cue) return;
    const said = document.createElement("div");
    said.className = "slide-cue";
    said.ariaHidden = "true";
    said.textContent = `${words} ↔`;
    box.before(said);
  };
  // Formulas and letters come later, and a phone is turned.
  const watch = new ResizeObserver((seen) => {
    for (const { target } of seen) mark(target.matches(boxes) ? target : target.closest(boxes));
  });
  for (const box of document.querySelectorAll(boxes)) {
    mark(box);
    watch.observe(box);
    for (const table of box.querySelectorAll("table")) watch.observe(table);
  }
});

// A formula is one box: a line might break before the comma that follows it, or after a bracket. Code is text, whose
// last letter might be torn off; a long name breaks behind a dot or a low line rather than
// anywhere, and a very long one before a capital letter.
document.addEventListener("DOMContentLoaded", () => {
  const part = (node, pattern) => (node?.nodeType === Node.TEXT_NODE && node.data.match(pattern)?.[0]) || "";
  for (const name of document.querySelectorAll(".bd-article :not(pre) > code .pre")) {
    if (name.childElementCount || name.textContent.length < 12) continue;
    const breaks = name.textContent.length < 24 ? /(?<=\w\w[._])(?=\w)/ : /(?<=\w\w[._])(?=\w)|(?<=[a-z])(?=[A-Z])/;
    const parts = name.textContent.split(breaks);
    name.replaceChildren(...parts.flatMap((part, place) => (place ? [document.createElement("wbr"), part] : [part])));
  }
  // A number and its sign stay together, with the mark of the number between them or without.
  const texts = document.createTreeWalker(document.querySelector(".bd-article") ?? document.body, NodeFilter.SHOW_TEXT);
  while (texts.nextNode()) {
    const text = texts.currentNode;
    if (!text.parentElement.closest("pre, code, textarea, script")) {
      const kept = text.data.replace(/(?<=^|\d) %/g, "\u00a0%");
      if (kept !== text.data) text.data = kept;
    }
  }
  for (const formula of document.querySelectorAll(".bd-article span.math")) {
    const { previousSibling: before, nextSibling: after } = formula;
    const opening = part(before, /[([“‘（]+$/);
    const closing = part(after, /^(?:['’]s\b|[-‐,.;:!?)\]%”’，。；：！？、）])+/);
    if (!opening && !closing) continue;
    if (opening) before.data = before.data.slice(0, -opening.length);
    if (closing) after.data = after.data.slice(closing.length);
    const whole = document.createElement("span");
    whole.className = "unbroken";
    formula.replaceWith(whole);
    whole.append(opening, formula, closing);
  }
});

// Footnotes call themselves a list without having list items.
document.addEventListener("DOMContentLoaded", () => {
  for (const list of document.querySelectorAll('.citation-list[role="list"]')) {
    list.removeAttribute("role");
  }
});

// What a search shows of a page are words: mathematics would come as its source.
document.addEventListener("DOMContentLoaded", () => {
  if (typeof Search === "undefined" || !Search.htmlToText) return;
  const plain = Search.htmlToText;
  Search.htmlToText = (html, anchor) => {
    const page = new DOMParser().parseFromString(html, "text/html");
    for (const node of page.querySelectorAll(".math, .cell_input, .cell_output")) node.replaceWith(" … ");
    page.querySelector(".language-switch")?.remove();
    return plain(page.documentElement.outerHTML, anchor);
  };
});

// A proof that opens on demand has no title for the button, and the script of the buttons would stop there.
function titleProofs() {
  for (const [number, proof] of document.querySelectorAll(".proof.dropdown").entries()) {
    // All proofs of a page have one id, and the button would close the first of them.
    proof.id = `proof-on-demand-${number + 1}`;
    const title = document.createElement("p");
    title.className = "admonition-title";
    title.textContent = "Proof";
    const first = proof.querySelector("p")?.firstChild;
    if (first?.nodeType === Node.TEXT_NODE) first.data = first.data.replace(/^Proof\.\s*/, "");
    proof.prepend(title);
  }
}

// Before that script runs, which waits for the page to be there.
if (document.readyState !== "loading") titleProofs();
else document.addEventListener("readystatechange", titleProofs, { once: true });

// The arrows that unfold the contents have a picture and no name.
document.addEventListener("DOMContentLoaded", () => {
  for (const arrow of document.querySelectorAll(".bd-sidenav summary")) {
    const page = arrow.closest("li")?.querySelector("a");
    arrow.setAttribute("aria-label", `Pages below ${page ? page.textContent.trim() : "this one"}`);
  }
});

// Contents name the Chinese pages wherever one is, and a voice that reads them has to know.
document.addEventListener("DOMContentLoaded", () => {
  const names = ".bd-sidebar :is(a, .caption-text), .prev-next-title, .bd-sidebar-secondary a, .onlyprint :is(h1, a)";
  for (const node of document.querySelectorAll(names)) {
    if (/\p{Script=Han}/u.test(node.textContent)) node.lang = "zh-Hans";
  }
});

// Paper is white. The look that the reader chose comes back afterwards.
{
  const { dataset } = document.documentElement;
  let chosen;
  window.addEventListener("beforeprint", () => {
    chosen = dataset.theme;
    dataset.theme = "light";
  });
  window.addEventListener("afterprint", () => {
    dataset.theme = chosen;
  });
}
