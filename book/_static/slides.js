// Keys for a deck of slides: see book/_tools/slides.py. Without this one scrolls.
const slides = [...document.querySelectorAll(".slide")];
const STEPS = {
  ArrowRight: 1, ArrowDown: 1, PageDown: 1, " ": 1, ArrowLeft: -1, ArrowUp: -1, PageUp: -1,
};

function shown() {
  const places = slides.map((slide) => Math.abs(slide.getBoundingClientRect().top));
  return places.indexOf(Math.min(...places));
}

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest("summary, a, button")) {
    if (event.key === " " || event.key === "Enter") return;
  }
  const last = slides.length - 1;
  const to = event.key === "Home" ? 0 : event.key === "End" ? last : shown() + STEPS[event.key];
  if (!(to >= 0 && to <= last)) return;
  event.preventDefault();
  slides[to].scrollIntoView();
  history.replaceState(null, "", `#${slides[to].id}`);
});
