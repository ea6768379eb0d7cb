"use strict";

// Sorting, filtering and copying for the tables. Without this file every table is whole, in its first order.

(() => {
  const cellsOf = (row) => Array.from(row.children);

  // Numbers before words, each in its own order; an empty key is an unknown and comes last in both directions.
  function compare(first, second, direction) {
    if (first === "" || second === "") {
      return (first === "") - (second === "");
    }
    const [a, b] = [Number(first), Number(second)];
    if (!Number.isNaN(a) && !Number.isNaN(b)) {
      return direction * (a - b);
    }
    return direction * first.localeCompare(second, "en", { numeric: true });
  }

  function sortBy(table, header) {
    const column = cellsOf(header.parentElement).indexOf(header);
    const ascending = header.getAttribute("aria-sort") !== "ascending";
    const key = (row) => row.children[column].dataset.sort ?? row.children[column].textContent.trim();
    for (const other of header.parentElement.children) {
      other.removeAttribute("aria-sort");
    }
    header.setAttribute("aria-sort", ascending ? "ascending" : "descending");
    // The rows above and below the line of a table are two bodies, and each keeps to its side.
    for (const body of table.querySelectorAll("tbody:not(.bb-line)")) {
      const rows = Array.from(body.rows).sort((first, second) => compare(key(first), key(second), ascending ? 1 : -1));
      place(body, rows);
    }
  }

  // The browser takes a quarter of a second to lay out 500 rows. A reader at the top of a table waits for the first ones
  // only, and the others follow in the next frames.
  const FIRST = 40;

  function place(body, rows) {
    const scroll = body.closest(".bb-scroll");
    const later = scroll !== null && scroll.scrollTop > 0 ? [] : rows.slice(FIRST);
    // A row that is hidden before it moves costs no style and no layout.
    for (const row of later) {
      row.classList.add("bb-later");
    }
    body.append(...rows);
    if (later.length === 0) {
      return;
    }
    const reveal = () => {
      for (const row of later.splice(0, FIRST)) {
        row.classList.remove("bb-later");
      }
      if (later.length > 0) {
        requestAnimationFrame(reveal);
      }
    };
    // Two frames later, the first rows have been painted.
    requestAnimationFrame(() => requestAnimationFrame(reveal));
  }

  function filter(board) {
    const text = board.querySelector("[data-bb-filter]").value.trim().toLocaleLowerCase();
    const hideBaselines = board.querySelector("[data-bb-hide-baselines]")?.checked ?? false;
    const rows = Array.from(board.querySelectorAll("tbody:not(.bb-line) > tr"));
    let shown = 0;
    for (const row of rows) {
      const name = row.querySelector("th").textContent + " " + (row.textContent ?? "");
      row.hidden = (hideBaselines && row.dataset.baseline === "true") || !name.toLocaleLowerCase().includes(text);
      shown += row.hidden ? 0 : 1;
    }
    const rowWord = rows.length === 1 ? "row" : "rows";
    const count = shown === rows.length ? `${shown} ${rowWord}` : `${shown} of ${rows.length} ${rowWord}`;
    board.querySelector("[data-bb-count]").textContent = count;
  }

  // Shows what holds for one choice of the ranking metric, on the whole page, and puts the rows in its order. The rows
  // below the line stay there: which models pass the gate does not depend on the metric that ranks.
  function rankBy(choice) {
    for (const part of document.querySelectorAll("[data-bb-by]")) {
      part.hidden = part.dataset.bbBy !== choice;
    }
    for (const select of rankings) {
      select.value = choice;
      const table = select.closest("[data-bb-board]").querySelector("table");
      const shown = (row) => row.querySelector(".bb-rank > [data-bb-by]:not([hidden])");
      for (const header of table.querySelectorAll("[aria-sort]")) {
        header.removeAttribute("aria-sort");
      }
      for (const body of table.querySelectorAll("tbody:not(.bb-line)")) {
        const rows = Array.from(body.rows);
        for (const row of rows) {
          row.cells[0].dataset.sort = shown(row).dataset.sort;
        }
        place(body, rows.sort((first, second) => shown(first).dataset.bbPlace - shown(second).dataset.bbPlace));
      }
    }
  }

  // The address keeps the choice, and leads to the table in which it was made.
  function keep(select) {
    const address = new URL(location.href);
    const isFirst = select.selectedIndex === 0;
    address.search = isFirst ? "" : new URLSearchParams({ "rank-by": select.value }).toString();
    address.hash = select.dataset.bbRankBy;
    history.replaceState(null, "", address);
  }

  async function copy(button) {
    const text = button.parentElement.querySelector("code").textContent;
    try {
      await navigator.clipboard.writeText(text);
      button.textContent = "Copied";
    } catch {
      button.textContent = "Select and copy by hand";
    }
    setTimeout(() => {
      button.textContent = "Copy";
    }, 2000);
  }

  // The theme gives its search a role without a name, and readers of the screen hear only the role.
  document.querySelector('.md-search[role="dialog"]')?.setAttribute("aria-label", "Search");
  // It also scrolls wide tables of hand-written pages in a box that no key would reach.
  addEventListener("load", () => {
    for (const box of document.querySelectorAll(".md-typeset__scrollwrap")) {
      if (box.scrollWidth > box.clientWidth) {
        box.tabIndex = 0;
      }
    }
  });

  for (const board of document.querySelectorAll("[data-bb-board]")) {
    for (const button of board.querySelectorAll("thead button:not([popovertarget])")) {
      button.addEventListener("click", () => sortBy(board.querySelector("table"), button.closest("th")));
    }
    const controls = board.querySelector(".bb-controls:not(.bb-filters)");
    if (controls !== null) {
      controls.hidden = false;
      controls.addEventListener("input", () => filter(board));
    }
  }
  const rankings = document.querySelectorAll("[data-bb-rank-by]");
  for (const select of rankings) {
    select.addEventListener("change", () => {
      rankBy(select.value);
      keep(select);
    });
  }
  const asked = new URLSearchParams(location.search).get("rank-by");
  if (Array.from(rankings[0]?.options ?? []).some((option) => option.value === asked)) {
    rankBy(asked);
  }
  for (const button of document.querySelectorAll("[data-bb-copy]")) {
    button.hidden = false;
    button.addEventListener("click", () => copy(button));
  }
})();
