"use strict";

// Differences between models, with intervals from draws that all models of a table share. Names come from
// strangers: they reach the page as text nodes and never as markup.

(() => {
  const root = document.querySelector("[data-bb-compare]");
  if (root === null) {
    return;
  }
  const NORMAL_95 = 1.959964;
  const LEVELS = 32767;
  const SVG = "http://www.w3.org/2000/svg";
  const { loader, element, fill, drawer, failure } = bbChoosing;
  const load = loader(root.dataset.bbCompare, ".gz");
  const form = root.querySelector("form");
  const status = root.querySelector("[data-bb-status]");
  const box = root.querySelector(".bb-scroll");
  let listed = null;

  const number = (value, signed) => {
    const text = Math.abs(value).toFixed(3);
    if (Number(text) === 0) {
      return text;
    }
    return (value < 0 ? "\u2212" : signed ? "+" : "") + text;
  };

  // The values of a result by metric and slice, each with draws of its deviation from the true value.
  function decoded(file, metrics) {
    const bytes = Uint8Array.from(atob(file.draws), (letter) => letter.charCodeAt(0));
    const view = new DataView(bytes.buffer);
    const n = listed.n_draws;
    const found = new Map();
    file.slices.forEach(([metric, key, group, value], row) => {
      const { minimum, maximum } = metrics[metric];
      const unit = (maximum - minimum) / LEVELS;
      const drawn = Array.from({ length: n }, (_, index) => unit * view.getInt16(2 * (row * n + index), true));
      found.set(JSON.stringify([metric, key, group]), { key, group, metric, value, drawn });
    });
    return found;
  }

  function difference(one, other) {
    const pairs = other.drawn.map((deviation, index) => deviation - one.drawn[index]);
    const value = other.value - one.value;
    const mean = pairs.reduce((sum, each) => sum + each, 0) / pairs.length;
    const variance = pairs.reduce((sum, each) => sum + (each - mean) ** 2, 0) / (pairs.length - 1);
    const half = NORMAL_95 * Math.sqrt(variance);
    return { value, low: value - half, high: value + half };
  }

  function whisker({ value, low, high }, reach) {
    const drawing = document.createElementNS(SVG, "svg");
    const [width, height] = [120, 12];
    const x = (at) => 4 + ((Math.min(Math.max(at, -reach), reach) + reach) / (2 * reach)) * (width - 8);
    const mark = (name, attributes) => {
      const made = document.createElementNS(SVG, name);
      for (const [attribute, set] of Object.entries(attributes)) {
        made.setAttribute(attribute, String(set));
      }
      drawing.append(made);
    };
    drawing.setAttribute("class", "bb-whisker");
    drawing.setAttribute("viewBox", `0 0 ${width} ${height}`);
    drawing.setAttribute("width", width);
    drawing.setAttribute("height", height);
    drawing.setAttribute("aria-hidden", "true");
    mark("line", { class: "bb-track", x1: 4, x2: width - 4, y1: 6, y2: 6 });
    mark("line", { class: "bb-ideal-tick", x1: x(0), x2: x(0), y1: 1, y2: 11 });
    if (low !== null) {
      mark("line", { class: "bb-range", x1: x(low), x2: x(high), y1: 6, y2: 6 });
    }
    mark("circle", { class: "bb-dot", cx: x(value), cy: 6, r: 2.6 });
    return drawing;
  }

  function fillForm(table, chosen, groups) {
    const models = table.results.map((result) => [result.id, result.model]);
    fill(form.table, listed.tables.map((one) => [one.id, `${one.benchmark}: ${one.title}`]), table.id);
    fill(form.model, models, chosen.model.id);
    fill(form.other, models, chosen.other.id);
    fill(form.third, [["", "no other model"], ...models], chosen.third?.id);
    fill(form.metric, table.metrics.map((metric) => [metric.name, metric.label]), chosen.metric.name);
    const named = groups.map((key) => [key, (table.group_names[key] ?? key).replaceAll("_", " ")]);
    fill(form.group, [["", "all items and every group"], ...named], chosen.group);
  }

  function chosenOf(state) {
    const table = listed.tables.find((one) => one.id === state.get("table")) ?? listed.tables[0];
    const named = (name) => table.results.find((result) => result.id === state.get(name));
    const model = named("model") ?? table.results[0];
    const other = named("other") ?? table.results.find((result) => result !== model);
    const third = named("third");
    const metric = table.metrics.find((one) => one.name === state.get("metric")) ?? table.metrics[0];
    return { table, model, other, third, metric, group: state.get("group") ?? "" };
  }

  async function show(isOld) {
    const chosen = chosenOf(new URLSearchParams(location.hash.slice(1)));
    const { table, metric } = chosen;
    const results = [chosen.model, chosen.other, chosen.third].filter((result) => result !== undefined);
    const files = await Promise.all(results.map((result) => load(`${table.id}/${result.id}.json`)));
    if (isOld()) {
      return;
    }
    const values = files.map((file) => decoded(file, table.metrics));
    const own = [...values[0].values()].filter((slice) => table.metrics[slice.metric] === metric);
    const groups = [...new Set(own.map((slice) => slice.key))].filter((key) => key !== "");
    fillForm(table, chosen, groups);
    const rows = own
      .filter((slice) => chosen.group === "" || slice.key === "" || slice.key === chosen.group)
      .map((slice) => {
        const others = values.slice(1).map((one) => one.get(JSON.stringify([slice.metric, slice.key, slice.group])));
        return { slice, others, differences: others.map((other) => (other === undefined ? null : difference(slice, other))) };
      });
    const ends = rows.flatMap((row) => row.differences).filter((one) => one !== null);
    const reach = Math.max(1e-9, ...ends.flatMap(({ value, low, high }) => [value, low ?? value, high ?? value]).map(Math.abs));
    draw(table, metric, results, rows, reach);
    const n = ends.filter((one) => one.low !== null).length;
    const n_apart = ends.filter((one) => one.low > 0 || one.high < 0).length;
    status.textContent = `${rows.length} ${rows.length === 1 ? "row" : "rows"}; ${n_apart} of ${n} intervals leave out 0`;
    root.querySelector("[data-bb-note]").textContent =
      `95 % intervals, from the standard deviation of ${listed.n_draws} paired draws. Of ${n} intervals ` +
      `between equal models, ${(n / 20).toFixed(n < 200 ? 1 : 0)} leave out 0 by chance on average; ranks of the board are corrected for that, and this page is not.`;
    box.hidden = false;
  }

  function draw(table, metric, results, rows, reach) {
    const [first, ...others] = results;
    box.querySelector("caption span").textContent = `${metric.label}: ${metric.text}`;
    const short = (result) => result.model.slice(result.model.lastIndexOf("/") + 1);
    const headings = ["Group", ...results.map((result) => result.model), ...others.map((other) => `${short(other)} minus ${short(first)}`)];
    box.querySelector("thead tr").replaceChildren(
      ...headings.map((text, place) => {
        const heading = element("th");
        const told = element("span", text);
        told.className = "bb-plain-heading";
        heading.append(told);
        heading.scope = "col";
        heading.className = place === 0 ? "bb-model" : "";
        return heading;
      }),
    );
    box.querySelector("tbody").replaceChildren(
      ...rows.map(({ slice, others: told, differences }) => {
        const row = element("tr");
        const key = (table.group_names[slice.key] ?? slice.key).replaceAll("_", " ");
        const name = element("th", slice.key === "" ? "all items" : `${key}: ${slice.group.replaceAll("_", " ")}`);
        name.scope = "row";
        name.className = "bb-model";
        row.append(name);
        for (const one of [slice, ...told]) {
          const cell = element("td", one === undefined ? "unknown" : number(one.value, metric.minimum < 0));
          cell.className = "bb-number";
          row.append(cell);
        }
        for (const found of differences) {
          const cell = element("td");
          if (found === null) {
            cell.textContent = "unknown";
          } else {
            const strong = element(found.low > 0 || found.high < 0 ? "strong" : "span", number(found.value, true));
            const interval = found.low === null ? "no interval" : `[${number(found.low, true)}, ${number(found.high, true)}]`;
            cell.append(strong, " ", element("small", interval), whisker(found, reach));
          }
          row.append(cell);
        }
        return row;
      }),
    );
  }

  const update = drawer(box, status, show);

  form.addEventListener("submit", (event) => event.preventDefault());
  form.addEventListener("change", (event) => {
    box.setAttribute("aria-busy", "true");
    const chosen = new URLSearchParams();
    for (const [name, value] of new FormData(form)) {
      if (value !== "" && (event.target.name !== "table" || name === "table")) {
        chosen.set(name, value);
      }
    }
    if (location.hash.slice(1) === chosen.toString()) {
      update();
    } else {
      location.hash = chosen.toString();
    }
  });
  window.addEventListener("hashchange", update);

  root.hidden = false;
  load("tables.json")
    .then((found) => {
      listed = found;
      if (listed.tables.length === 0) {
        form.hidden = true;
        status.textContent = "No table has two results that can be compared.";
        return;
      }
      update();
    })
    .catch((error) => {
      status.textContent = failure(error);
    });
})();
