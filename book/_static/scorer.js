// What a word's search finds first: the chapter that teaches it, then the pages that go deeper, then the rest.
var Scorer = {
  // Sphinx gives a heading that has one of the words as much as one that has them all.
  headings: (docname) => {
    const words = new URLSearchParams(window.location.search).get("q").toLowerCase().trim();
    const { alltitles, docnames, titles } = Search._index;
    const named = Object.entries(alltitles)
      .filter(([heading]) => heading.toLowerCase().includes(words))
      .flatMap(([heading, places]) => places.map(([file]) => [heading, file]))
      .filter(([, file]) => docnames[file] === docname);
    return named.some(([heading, file]) => titles[file].endsWith(heading)) ? 30 : named.length ? 20 : 0;
  },
  score: ([docname, , anchor, , score]) => {
    const name = docname.replace(/^book\//, "");
    const refers = ["glossary", "bibliography", "errata", "how_fast"].includes(name);
    if (refers || name.startsWith("api/") || name.startsWith("solutions/")) return score - 200;
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
