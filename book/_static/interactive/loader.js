// Bring the interactive figures to the page, and cost nothing on a page that has none.
(() => {
  // Scripts are found from this one, so pages may lie anywhere, also on a disk without a server.
  const home = document.currentScript.src;
  const common = ["vendor/d3.min.js", "vendor/plot.umd.min.js", "frame.js"];

  function load(path) {
    return new Promise((resolve, reject) => {
      const script = document.createElement("script");
      script.src = new URL(path, home);
      // All are fetched at once and run in this order.
      script.async = false;
      script.onload = resolve;
      script.onerror = () => reject(new Error(`${path} could not be loaded`));
      document.head.append(script);
    });
  }

  document.addEventListener("DOMContentLoaded", async () => {
    const boxes = [...document.querySelectorAll(".interactive[data-figure]")];
    if (boxes.length === 0) return;
    const names = new Set(boxes.map((box) => box.dataset.figure));
    await Promise.all([...common, ...[...names].map((name) => `${name}.js`)].map(load));
    for (const box of boxes) dpnotes.show(box, dpnotes.figures[box.dataset.figure]);
  });
})();
