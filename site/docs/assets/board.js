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

  function isNextAscending(header) {
    const sorted = header.getAttribute("aria-sort");
    return sorted === null ? !header.hasAttribute("data-bb-highest-first") : sorted === "descending";
  }

  function sortBy(table, header, ascending = isNextAscending(header)) {
    const column = cellsOf(header.parentElement).indexOf(header);
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
    const rows = Array.from(board.querySelectorAll("tbody > tr"));
    for (const row of rows) {
      row.hidden = !row.textContent.toLocaleLowerCase().includes(text);
    }
    const shown = rows.filter((row) => !row.hidden).length;
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
    for (const select of document.querySelectorAll("[data-bb-rank-by]")) {
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

  // The address keeps what a reader chose, so that a link leads to the same view. filters.js keeps its own choices there.
  // A page that was opened from a folder may not change its address.
  function keep(name, value) {
    const address = new URL(location.href);
    address.searchParams.delete(name);
    if (value) {
      address.searchParams.set(name, value);
    }
    if (location.protocol !== "file:") {
      history.replaceState(null, "", address);
    }
  }

  // A table with columns that are folded and useless predictors in a band. A page has one, and those of own data besides,
  // which all keep to the same choices.
  function open(board) {
    const asked = new URLSearchParams(location.search);
    const table = board.querySelector("table");
    const select = board.querySelector("[data-bb-rank-by]");
    if (Array.from(select?.options ?? []).some((option) => option.value === asked.get("rank-by"))) {
      rankBy(asked.get("rank-by"));
    }
    const [key, direction] = (asked.get("sort") ?? "").split(":");
    const header = Array.from(table.querySelectorAll("th[data-bb-key]")).find((one) => one.dataset.bbKey === key);
    if (header !== undefined) {
      sortBy(table, header, direction !== "down");
    }
    const all = board.querySelector("[data-bb-all-columns]");
    if (all !== null) {
      const fold = () => board.classList.toggle("bb-brief", !all.checked);
      all.checked = asked.has("columns") || (header?.classList.contains("bb-more") ?? false);
      fold();
      all.addEventListener("change", () => {
        fold();
        keep("columns", all.checked ? "all" : "");
      });
    }
    const band = board.querySelector("[data-bb-baselines]");
    if (band !== null) {
      band.checked ||= asked.has("baselines");
      band.addEventListener("change", () => keep("baselines", band.checked ? "shown" : ""));
    }
    board.querySelector(".bb-choices").hidden = false;
    select?.addEventListener("change", () => {
      rankBy(select.value);
      keep("rank-by", select.selectedIndex === 0 ? "" : select.value);
      keep("sort", "");
    });
    table.tHead.addEventListener("click", () => {
      const sorted = table.querySelector("th[aria-sort]");
      const word = sorted?.getAttribute("aria-sort") === "ascending" ? "up" : "down";
      keep("sort", sorted === null ? "" : `${sorted.dataset.bbKey}:${word}`);
    });
  }

  // Tables lay on the page of their benchmark once, and old links lead there.
  function follow() {
    const anchor = location.hash.slice(1);
    const link = Array.from(document.querySelectorAll("[data-bb-anchor]")).find((one) => one.dataset.bbAnchor === anchor);
    if (link !== undefined) {
      location.replace(link.href + location.search);
    }
  }

  async function copy(button, text) {
    const words = button.textContent;
    try {
      await navigator.clipboard.writeText(text);
      button.textContent = "Copied";
    } catch {
      button.textContent = "Select and copy by hand";
    }
    setTimeout(() => {
      button.textContent = words;
    }, 2000);
  }

  // The theme gives its search a role without a name, and readers of the screen hear only the role.
  document.querySelector('.md-search[role="dialog"]')?.setAttribute("aria-label", "Search");
  // It also scrolls wide tables of hand-written pages in boxes that no key would reach, and that have no name. Windows
  // change, so that a box is asked again with each new size.
  const boxes = new ResizeObserver((changed) => {
    for (const { target } of changed) {
      const said = { tabindex: "0", role: "region", "aria-label": `Table of ${headings(target)}` };
      for (const [name, value] of Object.entries(said)) {
        if (target.scrollWidth > target.clientWidth) {
          target.setAttribute(name, value);
        } else {
          target.removeAttribute(name);
        }
      }
    }
  });
  const headings = (box) => Array.from(box.querySelectorAll("th"), (one) => one.textContent.trim()).join(", ");
  addEventListener("load", () => {
    for (const box of document.querySelectorAll(".md-typeset__scrollwrap")) {
      boxes.observe(box);
    }
  });

  for (const board of document.querySelectorAll("[data-bb-board]")) {
    for (const button of board.querySelectorAll("thead button:not([popovertarget])")) {
      button.addEventListener("click", () => sortBy(board.querySelector("table"), button.closest("th")));
    }
    const controls = board.querySelector("[data-bb-filter]")?.closest(".bb-controls");
    if (controls) {
      controls.hidden = false;
      controls.addEventListener("input", () => filter(board));
    }
    if (board.querySelector(".bb-choices") !== null) {
      open(board);
    }
  }
  for (const button of document.querySelectorAll("[data-bb-copy]")) {
    button.hidden = false;
    button.addEventListener("click", () => copy(button, button.parentElement.querySelector("code").textContent));
  }
  for (const button of document.querySelectorAll("[data-bb-copy-address]")) {
    button.hidden = false;
    button.addEventListener("click", () => copy(button, location.href));
  }
  follow();
})();
