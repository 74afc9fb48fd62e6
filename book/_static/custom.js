// A box that scrolls must be reachable by keyboard.
document.addEventListener("DOMContentLoaded", () => {
  const boxes = ".cell_output pre, .cell_input pre, .cell_output, .pst-scrollable-table-container, div.math";
  for (const box of document.querySelectorAll(boxes)) {
    if (box.scrollWidth > box.clientWidth && !box.hasAttribute("tabindex")) {
      box.tabIndex = 0;
    }
  }
});
