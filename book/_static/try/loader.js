// Bring the boxes to try things in to the page, and cost nothing on a page that has none.
(() => {
  const home = document.currentScript.src;

  document.addEventListener("DOMContentLoaded", async () => {
    const boxes = [...document.querySelectorAll(".try-it[data-try]")];
    // A page read from a disk may start no worker; there the box stays as it is, standing still.
    if (boxes.length === 0 || location.protocol === "file:") return;
    const { show } = await import(new URL("box.js", home));
    for (const box of boxes) show(box);
  });
})();
