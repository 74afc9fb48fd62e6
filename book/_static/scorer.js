// What a word's search finds first: the chapter that teaches it, then the pages that go deeper, then the rest.
var Scorer = {
  score: ([docname, , anchor, , score]) => {
    const name = docname.replace(/^book\//, "");
    if (name.startsWith("api/") || name.startsWith("solutions/")) return score - 60;
    if (name === "glossary" || name === "bibliography" || name === "errata") return score - 60;
    const nested = name.includes("/");
    return score + (nested ? 2 : 10) + (anchor ? 0 : 5);
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
