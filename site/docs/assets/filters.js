"use strict";

// Filters the rows of a table by facts about their models. The table has data-bb-filters, its rows data-open, data-kind,
// data-size, data-date and data-vouching, and the controls beside it data-bb-facet. Rows without these facts, such as
// those of useless predictors, stay. The address keeps the choice, so that a link leads to the same rows.

(() => {
  // A day may be known to the month only: 2024-04 counts as since 2024.
  const TESTS = {
    find: (row, text) => row.textContent.toLocaleLowerCase().includes(text.toLocaleLowerCase()),
    date: (row, year) => (year === "unknown" ? row.dataset.date === "" : row.dataset.date >= year),
    size: (row, range) => {
      if (row.dataset.size === "" || range === "unknown") {
        return row.dataset.size === "" && range === "unknown";
      }
      const [low, high] = range.split("-");
      return Number(row.dataset.size) >= Number(low) && (high === "" || Number(row.dataset.size) < Number(high));
    },
  };
  const fits = (row, facet, value) =>
    facet in TESTS ? TESTS[facet](row, value) : row.dataset[facet].split(" ").includes(value);
  // A model may fit of which no source says so; readers are told how many were left out for that.
  const isUnknown = (row, facet, value) =>
    facet !== "find" && ["", "unknown"].includes(row.dataset[facet])
    // A model that was there before a year is not of that year or later.
    && !(facet === "date" && value !== "unknown" && row.dataset.dateBy < value);

  function start(table) {
    const controls = table.closest("[data-bb-board]").querySelector(".bb-filters");
    const fields = Array.from(controls.querySelectorAll("[data-bb-facet]"));
    const all = controls.querySelector("[data-bb-all]");

    function apply() {
      const chosen = fields.map((field) => [field.dataset.bbFacet, field.value.trim()]).filter(([, value]) => value !== "");
      const rows = Array.from(table.querySelectorAll("tr[data-open]"));
      for (const row of rows) {
        row.hidden = !chosen.every(([facet, value]) => fits(row, facet, value));
      }
      const shown = rows.filter((row) => !row.hidden).length;
      const unknown = rows.filter(
        (row) => row.hidden && chosen.every(([facet, value]) => isUnknown(row, facet, value) || fits(row, facet, value)),
      ).length;
      const word = rows.length === 1 ? "model" : "models";
      const some = shown === 0 ? `none of these ${rows.length} ${word}` : `${shown} of ${rows.length} ${word}`;
      const count = shown === rows.length ? `${shown} ${word}` : some;
      const left = unknown === 0 ? "" : `; of ${unknown} it is unknown`;
      const below = shown === 0 && document.querySelector(".bb-folded") !== null ? "; models that were asked otherwise are named below the table" : "";
      controls.querySelector("[data-bb-shown]").textContent = count + left + below;
      all.hidden = chosen.length === 0;
      keep(new Map(chosen));
    }

    // A page that was opened from a folder may not change its address.
    function keep(chosen) {
      const address = new URL(location.href);
      for (const { dataset } of fields) {
        address.searchParams.delete(dataset.bbFacet);
        if (chosen.has(dataset.bbFacet)) {
          address.searchParams.set(dataset.bbFacet, chosen.get(dataset.bbFacet));
        }
      }
      if (location.protocol !== "file:" && address.href !== location.href) {
        history.replaceState(null, "", address);
      }
    }

    const asked = new URLSearchParams(location.search);
    for (const field of fields) {
      field.value = asked.get(field.dataset.bbFacet) ?? "";
      // An option that does not exist leaves the choice empty.
      field.value ||= "";
    }
    all.addEventListener("click", () => {
      for (const field of fields) {
        field.value = "";
      }
      apply();
      fields[0].focus();
    });
    controls.addEventListener("input", apply);
    controls.hidden = false;
    apply();
  }

  for (const table of document.querySelectorAll("table[data-bb-filters]")) {
    start(table);
  }
})();
