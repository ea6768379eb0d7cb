"use strict";

// The choices above the table of the front page that filters.js does not know: one benchmark, and intervals as numbers.
// Without this file the table is whole.

(() => {
  const board = document.querySelector("[data-bb-profile]");
  if (board === null) {
    return;
  }
  const table = board.querySelector("table");
  const choices = board.querySelector(".bb-choices");
  const group = board.querySelector("[data-bb-group]");
  const intervals = board.querySelector("[data-bb-intervals]");

  function apply() {
    for (const cell of table.querySelectorAll("[data-g]")) {
      cell.hidden = group.value !== "" && cell.dataset.g !== group.value;
    }
    table.classList.toggle("bb-with-intervals", intervals.checked);
  }

  // On a phone the columns of one benchmark fit beside the names, and the choices would push the table off the screen.
  const isNarrow = matchMedia("(max-width: 30rem)").matches;
  if (isNarrow && group.options.length > 2) {
    group.selectedIndex = 1;
    // What is left out must be seen without opening the fold.
    const shown = document.createElement("div");
    shown.className = "bb-controls";
    shown.append(group.parentElement);
    choices.after(shown);
  }
  choices.hidden = false;
  choices.open = !isNarrow;
  for (const control of [group, intervals]) {
    control.addEventListener("input", apply);
  }
  apply();

  // Where style sheets cannot anchor it, a note opens in the middle of the window, far from its button.
  for (const note of board.querySelectorAll(".bb-meanings > [popover]")) {
    note.addEventListener("toggle", (event) => {
      if (event.newState !== "open") {
        return;
      }
      const button = board.querySelector(`[popovertarget="${note.id}"]`).getBoundingClientRect();
      const left = Math.max(8, Math.min(button.left, innerWidth - note.offsetWidth - 8));
      const below = button.bottom + 4;
      const top = below + note.offsetHeight <= innerHeight - 8 ? below : Math.max(8, button.top - note.offsetHeight - 4);
      Object.assign(note.style, { inset: "auto", left: `${left}px`, margin: "0", top: `${top}px` });
    });
  }
})();
