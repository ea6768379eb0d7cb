"use strict";

// One part of a suite: its values in every result, and how each model uses its labels. The file of a part is loaded when
// it is chosen. Names and texts come from strangers: they reach the page as text nodes and never as markup.

(() => {
  const root = document.querySelector("[data-bb-part]");
  if (root === null) {
    return;
  }
  const MOST_LABELS = 60;
  const ALL = "all";
  const SVG = "http://www.w3.org/2000/svg";
  const { loader, element, fill, drawer, failure } = bbChoosing;
  const load = loader(root.dataset.bbPart);
  const form = root.querySelector("form");
  const status = root.querySelector("[data-bb-status]");
  const shown = root.querySelector("[data-bb-shown]");
  const values = root.querySelector("[data-bb-values]");
  let suites = [];

  const count = (n) => n.toLocaleString("en");
  const number = (value) => (value < 0 ? "\u2212" : "") + Math.abs(value).toFixed(3);
  const state = () => new URLSearchParams(location.hash.slice(1));
  const readable = (text) => text.replaceAll("_", " ");

  function link(text, address) {
    const made = element("a", text);
    made.setAttribute("href", address);
    return made;
  }

  // A reader sees where a link out of the site leads, since an address may come from anybody. Words may follow it.
  function outside(address) {
    const [, page, rest] = /^(https:\/\/[^\s,]+)?(.*)$/s.exec(address);
    if (page === undefined) {
      return [address];
    }
    const made = link(page, page);
    made.rel = "nofollow noopener noreferrer";
    return [made, rest];
  }

  function drawing(className, width, height) {
    const made = document.createElementNS(SVG, "svg");
    made.setAttribute("class", className);
    made.setAttribute("viewBox", `0 0 ${width} ${height}`);
    made.setAttribute("width", width);
    made.setAttribute("height", height);
    made.setAttribute("aria-hidden", "true");
    const mark = (name, attributes) => {
      const part = document.createElementNS(SVG, name);
      for (const [attribute, set] of Object.entries(attributes)) {
        part.setAttribute(attribute, String(set));
      }
      made.append(part);
    };
    return [made, mark];
  }

  function whisker([value, low, high], minimum, maximum) {
    const [made, mark] = drawing("bb-whisker", 84, 12);
    const share = (at) => (Math.min(Math.max(at, minimum), maximum) - minimum) / (maximum - minimum);
    const x = (at) => (3 + share(at) * 78).toFixed(1);
    mark("line", { class: "bb-track", x1: 3, x2: 81, y1: 6, y2: 6 });
    if (low !== null) {
      mark("line", { class: "bb-range", x1: x(low), x2: x(high), y1: 6, y2: 6 });
    }
    mark("circle", { class: "bb-dot", cx: x(value), cy: 6, r: 2.6 });
    return made;
  }

  // A bar for a share, with a tick at the share that it is to be compared with.
  function bar(share, tick, className) {
    const [made, mark] = drawing(`bb-bar ${className}`, 94, 12);
    mark("rect", { class: "bb-bar-track", x: 2, y: 2, width: 90, height: 8 });
    mark("rect", { class: "bb-bar-fill", x: 2, y: 2, width: (share * 90).toFixed(1), height: 8 });
    if (tick !== null) {
      mark("line", { class: "bb-ideal-tick", x1: 2 + tick * 90, x2: 2 + tick * 90, y1: 0, y2: 12 });
    }
    return made;
  }

  function heading(text, isFirst, note) {
    const made = element("th");
    const told = element("span", text, "bb-plain-heading");
    if (note !== undefined) {
      told.append(element("small", note));
    }
    made.scope = "col";
    made.className = isFirst ? "bb-model" : "";
    made.append(told);
    return made;
  }

  function unknown(reason) {
    const cell = element("td");
    cell.append(element("span", "unknown", "bb-unknown"), element("small", reason ?? "no reason is known", "bb-reason"));
    return cell;
  }

  function rowName(result) {
    const name = element("th", undefined, "bb-model");
    name.scope = "row";
    name.append(link(result.model, result.page));
    if (result.is_baseline) {
      name.append(element("span", "baseline", "bb-mark bb-mark-baseline"));
    } else if (result.detail !== "") {
      name.append(element("small", result.detail));
    }
    return name;
  }

  function valueCell(metric, [value, low, high, reason, floor], top) {
    if (value === null) {
      return unknown(reason);
    }
    const cell = element("td", undefined, "bb-number");
    cell.append(element("span", number(value), "bb-value"), whisker([value, low, high], metric.minimum, top));
    if (low === null) {
      const none = element("small");
      none.append(element("span", `no interval: ${reason}`, "bb-reason"));
      cell.append(none);
    } else {
      cell.append(element("small", `[${number(low)}, ${number(high)}]`));
    }
    if (metric.has_floor) {
      cell.append(element("small", floor === null ? "chance unknown" : `by chance ${number(floor)}`));
    }
    return cell;
  }

  // The values in some contexts, pairs of what the index and what the file says about each.
  function fillValues(index, contexts) {
    const names = [...new Set(contexts.flatMap(([context]) => context.metrics))];
    const metrics = names.map((name) => index.metrics[name]);
    const seen = contexts.flatMap(([context, found]) =>
      Object.values(found?.results ?? {}).map((own) => [context, own]),
    );
    const tops = metrics.map((metric) => {
      const ends = seen.flatMap(([context, own]) => own.values[context.metrics.indexOf(metric.name)]?.slice(0, 3) ?? []);
      return metric.maximum ?? Math.max(metric.minimum + 1e-9, ...ends.filter((one) => one !== null));
    });
    const first = [heading("Model", true), ...(contexts.length > 1 ? [heading("Prompt", false)] : [])];
    const headings = metrics.map((metric) => heading(metric.heading, false));
    values.querySelector("thead tr").replaceChildren(...first, ...headings, heading("No answer read from"));
    // The rows of a model stand together, those of baselines last.
    const results = contexts.flatMap(([context, found]) => context.results.map((result) => [result, context, found]));
    const order = new Intl.Collator("en", { numeric: true });
    results.sort(
      ([one], [other]) => one.is_baseline - other.is_baseline || (contexts.length > 1 ? order.compare(one.model, other.model) : 0),
    );
    const rows = results.map(([result, context, found]) => {
        const row = element("tr");
        const own = found?.results[result.id];
        if (result.is_baseline) {
          row.dataset.baseline = "true";
        }
        row.append(rowName(result), ...(contexts.length > 1 ? [element("td", context.title, "bb-number")] : []));
        if (own === undefined) {
          const cell = unknown(result.why_none ?? "this result does not have the part");
          cell.colSpan = metrics.length + 1;
          row.append(cell);
          return row;
        }
        const cells = metrics.map((metric, place) => {
          const value = own.values[context.metrics.indexOf(metric.name)];
          return value === undefined ? unknown("not a metric of this task") : valueCell(metric, value, tops[place]);
        });
        const missing = Object.entries(own.n_missing).map(
          ([split, n]) => `${count(n)} of ${count(found.n_items[split] ?? n)} in ${split}`,
        );
        row.append(...cells, element("td", missing.join(", ") || "none"));
        return row;
    });
    values.querySelector("tbody").replaceChildren(...rows);
    const meanings = metrics.flatMap((metric) => {
      const term = element("dt", `${metric.heading} `);
      const name = element("small");
      name.append(element("code", metric.name));
      term.append(name);
      return [term, element("dd", metric.text)];
    });
    root.querySelector("[data-bb-meanings]").replaceChildren(...meanings);
    return rows.length;
  }

  function barCell(value, tick, className) {
    const cell = element("td", undefined, "bb-number");
    if (value === null) {
      cell.append(element("span", "unknown", "bb-unknown"));
    } else {
      cell.append(number(value), bar(value, tick, className));
    }
    return cell;
  }

  // How one model uses the labels: a table whose bars stand side by side.
  function labelTable(result, own, [names, supports], areSame) {
    const box = element("div", undefined, "bb-scroll");
    box.tabIndex = 0;
    box.setAttribute("role", "region");
    box.setAttribute("aria-label", `Labels by ${result.model}`);
    const table = element("table", undefined, "bb-table");
    const caption = element("caption");
    const told = element("span");
    told.append(link(result.model, result.page), result.detail === "" ? "" : ` (${result.detail})`);
    const reasons = own.why_none.filter((reason) => reason !== null);
    if (reasons.length > 0) {
      told.append(`. Unknown: ${reasons.join("; ")}`);
    }
    caption.append(told);
    const head = element("thead");
    const first = element("tr");
    first.append(heading("Label", true), heading("Right"), heading("Chosen"), heading("Prior"));
    head.append(first);
    const total = Math.max(1, supports.reduce((sum, one) => sum + one, 0));
    const body = element("tbody");
    for (const [place, label] of names.slice(0, MOST_LABELS).entries()) {
      const row = element("tr");
      const name = element("th", label, "bb-model");
      name.scope = "row";
      const right = supports[place] / total;
      row.append(
        name,
        barCell(right, null, "bb-bar-right"),
        barCell(own.shares[place], right, "bb-bar-chosen"),
        barCell(own.priors[place], areSame ? 1 / names.length : null, "bb-bar-prior"),
      );
      body.append(row);
    }
    table.append(caption, head, body);
    box.append(table);
    return box;
  }

  function fillLabels(context, found) {
    const holder = root.querySelector("[data-bb-labels]");
    holder.replaceChildren();
    if (found === undefined || (found.labels === null && found.why_no_labels === null)) {
      return;
    }
    const title = element("h3", "Labels");
    if (found.labels === null) {
      holder.append(title, element("p", `The labels are not shown: ${found.why_no_labels}.`, "bb-note"));
      return;
    }
    const [names] = found.labels;
    const more = names.length > MOST_LABELS ? ` The first ${MOST_LABELS} of ${count(names.length)} are shown; the file of the part has all.` : "";
    const even = found.are_same ? ", with a tick at equal shares" : "";
    const note =
      "Right: share of the evaluated items whose right label it is. Chosen: share of the answers that choose it, with a tick at the " +
      `share of right ones. Prior: mean probability where each right label has the same weight${even}.${more}`;
    const tables = element("div", undefined, "bb-figures");
    for (const result of context.results) {
      const own = found.results[result.id];
      if (own?.shares !== undefined) {
        tables.append(labelTable(result, own, found.labels, found.are_same));
      }
    }
    holder.append(title, element("p", note, "bb-note"), tables);
  }

  function line(holder, name, ...content) {
    const told = element("dd");
    told.append(...content);
    holder.append(element("dt", name), told);
  }

  function fillFacts(index, file, found, context) {
    root.querySelector("[data-bb-name]").textContent = file.part;
    const facts = root.querySelector("[data-bb-facts]");
    facts.replaceChildren();
    for (const [key, value] of Object.entries(found?.groups ?? {})) {
      const name = readable(index.group_names[key] ?? key);
      line(facts, name[0].toUpperCase() + name.slice(1), readable(value));
    }
    const splits = Object.entries(found?.n_items ?? {}).map(([split, n]) => `${count(n)} in ${split}`);
    line(facts, "Items", splits.join(", ") || "unknown: no result under this prompt has the part");
    if (found?.labels) {
      const told = found.labels[0].map((label, place) => `${label} (${count(found.labels[1][place])})`);
      line(facts, "Labels", element("span", told.slice(0, MOST_LABELS).join(", ")));
    }
    if (file.text !== null) {
      const text = element("pre", file.text);
      text.dir = "auto";
      line(facts, "Instruction", text);
    } else if (file.why_no_text !== null) {
      line(facts, "Instruction", `not shown: ${file.why_no_text}`);
    }
    line(facts, "Data", link(index.dataset, index.dataset_page));
    for (const [name, address] of file.sources) {
      line(facts, "Source", element("span", name), ": ", ...outside(address));
    }
    line(facts, "See also", link("all parts under this prompt", context.page), ", ", link("the results on the whole suite", context.table));
  }

  async function show(isOld) {
    const chosen = state();
    const suite = suites.find((one) => one.id === chosen.get("suite")) ?? suites[0];
    const index = await load(`${suite.id}/index.json`);
    const [, name] = index.parts.find(([, path]) => path === chosen.get("part")) ?? index.parts[0];
    const file = await load(`${suite.id}/${name}.json`);
    if (isOld()) {
      return;
    }
    const isAll = chosen.get("context") === ALL;
    const asked = index.contexts.find((one) => one.id === chosen.get("context")) ?? index.contexts[0];
    const contexts = isAll ? index.contexts : [asked];
    const all = index.contexts.length > 1 ? [[ALL, "all prompts, without the labels"]] : [];
    fill(form.suite, suites.map((one) => [one.id, one.title]), suite.id);
    fill(form.part, index.parts.map(([part, path]) => [path, part]), name);
    fill(form.context, [...index.contexts.map((one) => [one.id, one.title]), ...all], isAll ? ALL : asked.id);
    form.suite.parentElement.hidden = suites.length === 1;
    fillFacts(index, file, file.contexts[asked.id], asked);
    const n_results = fillValues(index, contexts.map((context) => [context, file.contexts[context.id]]));
    fillLabels(asked, isAll ? undefined : file.contexts[asked.id]);
    const place = form.part.selectedIndex;
    const [back, forth] = form.querySelectorAll("[data-bb-step]");
    back.disabled = place === 0;
    forth.disabled = place === index.parts.length - 1;
    const results = `${count(n_results)} ${n_results === 1 ? "result" : "results"}`;
    status.textContent = `Part ${count(place + 1)} of ${count(index.parts.length)}, ${results}`;
  }

  const draw = drawer(shown, status, show);

  function choose(chosen) {
    shown.setAttribute("aria-busy", "true");
    if (location.hash.slice(1) === chosen.toString()) {
      draw();
    } else {
      location.hash = chosen.toString();
    }
  }

  form.addEventListener("submit", (event) => event.preventDefault());
  form.addEventListener("change", (event) => {
    const isSuite = event.target.name === "suite";
    choose(new URLSearchParams([...new FormData(form)].filter(([name]) => !isSuite || name === "suite")));
  });
  form.addEventListener("click", (event) => {
    const step = Number(event.target.dataset.bbStep ?? 0);
    const option = form.part.options[form.part.selectedIndex + step];
    if (step !== 0 && option !== undefined) {
      form.part.value = option.value;
      choose(new URLSearchParams([...new FormData(form)]));
    }
  });
  window.addEventListener("hashchange", draw);

  root.hidden = false;
  load("suites.json")
    .then((found) => {
      suites = found.suites;
      draw();
    })
    .catch((error) => {
      status.textContent = failure(error);
    });
})();
