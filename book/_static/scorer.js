// What a word's search finds first: the chapter that teaches it, then the pages that go deeper, then the rest.
// Sphinx gives a heading that has one of the words as much as one that has them all.
const headingsWith = (words) => {
  const { alltitles, docnames, titles } = Search._index;
  const points = new Map();
  for (const [heading, places] of Object.entries(alltitles)) {
    if (!heading.toLowerCase().includes(words)) continue;
    for (const [file] of places) {
      const name = docnames[file];
      points.set(name, Math.max(points.get(name) ?? 0, titles[file].endsWith(heading) ? 30 : 20));
    }
  }
  return points;
};

var Scorer = {
  asked: null,
  headings: (docname) => {
    const words = new URLSearchParams(window.location.search).get("q").toLowerCase().trim();
    // One pass over the headings of the book a search, not one a hit.
    if (words !== Scorer.asked) [Scorer.asked, Scorer.found] = [words, headingsWith(words)];
    return Scorer.found.get(docname) ?? 0;
  },
  score: ([docname, , anchor, , score]) => {
    const name = docname.replace(/^book\//, "");
    const refers = ["glossary", "bibliography", "errata", "how_fast"].includes(name);
    if (refers || name.startsWith("api/") || name.startsWith("solutions/")) return score - 200;
    // English words stand on Chinese pages, too; Chinese words on these alone.
    if (name.startsWith("zh/")) return score - (name === "zh/glossary" ? 300 : 200);
    const nested = name.includes("/");
    return score + (nested ? 2 : 10) + (anchor ? 0 : 5) + Scorer.headings(docname);
  },
  objNameMatch: 11,
  objPartialMatch: 6,
  objPrio: { 0: 15, 1: 5, 2: -5 },
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
};
