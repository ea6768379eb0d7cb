"use strict";

// Compares two models: verdicts over headline measures, which were computed for each pair, and differences by group from
// draws that all models of a table share. Names come from strangers: they reach the page as text nodes, never as markup.

(() => {
  const root = document.querySelector("[data-bb-compare]");
  if (root === null) {
    return;
  }
  const NORMAL_95 = 1.959964;
  const LEVELS = 127;
  const SVG = "http://www.w3.org/2000/svg";
  const { loader, element, fill, drawer, failure, named, listed, groupName, valueName } = bbChoosing;
  const load = loader(root.dataset.bbCompare, ".gz");
  const [models, choice] = root.querySelectorAll("form");
  const status = root.querySelector("[data-bb-status]");
  const verdict = root.querySelector("[data-bb-verdict]");
  const measured = root.querySelector("[data-bb-measures]");
  const tables = root.querySelector("[data-bb-tables]");
  const grouped = root.querySelector("[data-bb-groups]");
  let board = null;

  const number = (value, signed) => {
    const text = Math.abs(value).toFixed(3);
    if (Number(text) === 0) {
      return text;
    }
    return (value < 0 ? "\u2212" : signed ? "+" : "") + text;
  };

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
    mark("line", { class: "bb-range", x1: x(low), x2: x(high), y1: 6, y2: 6 });
    mark("circle", { class: "bb-dot", cx: x(value), cy: 6, r: 2.6 });
    return drawing;
  }

  const reachOf = (intervals) => Math.max(1e-9, ...intervals.flatMap(({ low, high }) => [low, high]).map(Math.abs));

  function leadCell(interval, reach, isApart) {
    const cell = element("td");
    const range = `[${number(interval.low, true)}, ${number(interval.high, true)}]`;
    const lead = element(isApart ? "strong" : "span", number(interval.value, true));
    cell.append(lead, " ", element("small", range), whisker(interval, reach));
    return cell;
  }

  function table(box, headings, rows) {
    box.querySelector("thead tr").replaceChildren(
      ...headings.map((text, place) => {
        const heading = element("th", undefined, place === 0 ? "bb-model" : "");
        heading.append(element("span", text, "bb-plain-heading"));
        heading.scope = "col";
        return heading;
      }),
    );
    box.querySelector("tbody").replaceChildren(
      ...rows.map(([name, ...cells]) => {
        const row = element("tr");
        const heading = element("th", undefined, "bb-model");
        heading.scope = "row";
        heading.append(name);
        row.append(heading, ...cells.map((cell) => (typeof cell === "string" ? element("td", cell, "bb-number") : cell)));
        return row;
      }),
    );
  }

  // The verdicts on two models, seen from the first one.
  async function verdictsOn(first, second) {
    const [one, other] = [first.key, second.key].sort();
    const file = share(first, second) ? await load(`pairs/${one}.json`) : {};
    const turned = one !== first.key;
    const seen = { first: turned ? "second" : "first", second: turned ? "first" : "second" };
    return (file[other] ?? []).map(([place, lead, low, high, outcome]) => {
      const value = turned ? -lead : lead;
      const interval = low === null ? null : turned ? { value, low: -high, high: -low } : { value, low, high };
      return { measure: board.measures[place], value, interval, outcome: seen[outcome] ?? outcome };
    });
  }

  function sentence(first, second, found) {
    const line = element("p");
    const of = (outcome) => found.filter((one) => one.outcome === outcome);
    const titles = [...new Set(found.map((one) => one.measure.benchmark))];
    const n = `${found.length} ${found.length === 1 ? "measure" : "measures"}`;
    line.append("Compared with ", element("strong", second.name), ` over ${n} of ${listed(titles)}, `);
    line.append(element("strong", first.name), " is ");
    const parts = [
      ["separably better in", of("first")],
      ["separably worse in", of("second")],
      ["different in", of("differs")],
      ["not to be told apart in", of("same")],
      ["not compared in", of("unknown")],
    ].filter(([, some], place) => place < 2 || some.length > 0);
    parts.forEach(([said, some], place) => {
      const names = some.length > 0 ? `: ${listed(some.map((one) => one.measure.label))}` : "";
      line.append(place === 0 ? "" : "; ", `${said} `, element("strong", String(some.length)), names);
    });
    line.append(".");
    return line;
  }

  // Says of models that know no more than a coin that being even is no merit: one of them may be "better" than the other.
  function unable(pair, found) {
    const titles = new Map(found.map(({ measure }) => [measure.benchmark, measure.useless]));
    const parts = [...titles].flatMap(([title, useless]) => {
      const names = pair.filter((one) => useless.includes(one.key)).map((one) => one.name);
      return names.length > 0 ? [`${listed(names)} on ${title}`] : [];
    });
    const text =
      `Not shown to know more than a useless predictor, such as a coin: ${parts.join("; ")}. ` +
      "A coin treats everybody alike, so being even is no merit there.";
    return parts.length > 0 ? [element("p", text, "bb-note bb-warning")] : [];
  }

  function showVerdict(first, second, found) {
    measured.hidden = found.length === 0;
    verdict.hidden = false;
    const level = root.querySelector("[data-bb-level]");
    if (found.length === 0) {
      const having = [first, second].map((one) => `${one.name} has results in ${listed(one.benchmarks)}.`);
      verdict.replaceChildren(
        element(
          "p",
          `These two have no headline measure under the same conditions, so none is compared. ${having.join(" ")} ` +
            "In one benchmark, results on other data, or by another prompt, are not the same measure.",
        ),
      );
      level.textContent = "";
      return;
    }
    const intervals = found.map((one) => one.interval).filter((one) => one !== null);
    const reach = reachOf(intervals);
    verdict.replaceChildren(...unable([first, second], found), sentence(first, second, found));
    const said = {
      first: `${first.name} is better`,
      second: `${second.name} is better`,
      same: "cannot be told apart",
      differs: "they differ; no value is ideal",
      unknown: "no interval, so not compared",
    };
    const rows = found.map(({ measure, value, interval, outcome }) => {
      const name = document.createDocumentFragment();
      const link = element("a", measure.label);
      link.href = measure.page;
      link.title = measure.sentence;
      name.append(link, element("small", measure.benchmark));
      const isApart = ["first", "second", "differs"].includes(outcome);
      const cells = [first, second].map((one) => number(measure.values[one.key], measure.is_signed));
      const lead = interval === null ? number(value, true) : leadCell(interval, reach, isApart);
      const judged = element("td", said[outcome]);
      if (outcome === "same" && (interval.low > 0 || interval.high < 0)) {
        judged.append(element("small", "missing answers could reverse it", "bb-reason"));
      }
      const winner = { first, second }[outcome];
      if (winner !== undefined && measure.useless.includes(winner.key)) {
        judged.append(element("small", "and is not shown to beat a useless predictor", "bb-reason"));
      }
      return [name, judged, ...cells, lead];
    });
    table(measured, ["Measure", "Verdict", first.name, second.name, `Lead of ${first.name}`], rows);
    const each = (100 * (1 - 0.05 / Math.max(intervals.length, 1))).toFixed(intervals.length > 1 ? 2 : 0);
    const widened =
      intervals.length > 1
        ? ` These are intervals of ${each} %, widened for ${intervals.length} comparisons (Bonferroni): of two equal models, at most 5 % would differ in any of them.`
        : " The interval is one of 95 %.";
    level.textContent =
      "Better is nearer to the ideal value, and the lead is how much nearer. Answers that a model refused count " +
      `against it.${widened} Both were asked the same: ${listed([...new Set(found.map((one) => one.measure.conditions))])}.`;
  }

  // The values of a result by metric and slice, each with draws of its deviation from the true value.
  function decoded(file) {
    const drawn = Int8Array.from(atob(file.draws), (letter) => letter.charCodeAt(0));
    const n = board.n_draws;
    return new Map(
      file.slices.map(([metric, key, group, value, scale], row) => {
        const draws = Array.from(drawn.subarray(row * n, (row + 1) * n), (level) => (scale / LEVELS) * level);
        return [JSON.stringify([metric, key, group]), { key, group, metric, value, draws }];
      }),
    );
  }

  function difference(one, other) {
    const pairs = one.draws.map((deviation, index) => deviation - other.draws[index]);
    const value = one.value - other.value;
    const mean = pairs.reduce((sum, each) => sum + each, 0) / pairs.length;
    const variance = pairs.reduce((sum, each) => sum + (each - mean) ** 2, 0) / (pairs.length - 1);
    const half = NORMAL_95 * Math.sqrt(variance);
    return { value, low: value - half, high: value + half };
  }

  async function showGroups(first, second, state, isOld) {
    const shared = board.tables.filter((one) => [first, second].every((model) => one.results.some((result) => result.model === model.key)));
    tables.hidden = shared.length === 0;
    if (shared.length === 0) {
      return;
    }
    const chosen = shared.find((one) => one.id === state.get("table")) ?? shared[0];
    const results = [first, second].map((model) => chosen.results.find((result) => result.model === model.key));
    const files = await Promise.all(results.map((result) => load(`${chosen.id}/${result.id}.json`)));
    if (isOld()) {
      return;
    }
    const place = Math.max(0, chosen.metrics.findIndex((one) => one.label === state.get("metric")));
    const metric = chosen.metrics[place];
    const [values, others] = files.map(decoded);
    const own = [...values.values()].filter((slice) => slice.metric === place);
    const keys = [...new Set(own.map((slice) => slice.key))].filter((key) => key !== "");
    const group = keys.includes(state.get("group")) ? state.get("group") : "";
    fill(choice.table, shared.map((one) => [one.id, one.name]), chosen.id);
    fill(choice.metric, chosen.metrics.map((one) => [one.label, one.label]), metric.label);
    fill(choice.group, [["", "all items and every group"], ...keys.map((key) => [key, groupName(chosen, key)])], group);
    const found = own
      .filter((slice) => group === "" || slice.key === "" || slice.key === group)
      .map((slice) => ({ slice, other: others.get(JSON.stringify([slice.metric, slice.key, slice.group])) }))
      .map((row) => ({ ...row, interval: row.other === undefined ? null : difference(row.slice, row.other) }));
    const intervals = found.map((row) => row.interval).filter((one) => one !== null);
    const reach = reachOf(intervals);
    const isApart = ({ low, high }) => low > 0 || high < 0;
    const rows = found.map(({ slice, other, interval }) => [
      slice.key === "" ? "all items" : `${groupName(chosen, slice.key)}: ${valueName(chosen, slice.key, slice.group)}`,
      number(slice.value, metric.is_signed),
      other === undefined ? "unknown" : number(other.value, metric.is_signed),
      interval === null ? "unknown" : leadCell(interval, reach, isApart(interval)),
    ]);
    grouped.querySelector("caption span").textContent = `${metric.label}: ${metric.text}`;
    const [one, two] = [first, second].map((model) => model.name);
    table(grouped, ["Group", one, two, `${one} minus ${two}`], rows);
    root.querySelector("[data-bb-note]").textContent =
      `${intervals.filter(isApart).length} of ${intervals.length} intervals leave out 0. They are of 95 %, from the standard deviation of ` +
      `${board.n_draws} paired draws. Of ${intervals.length} intervals between equal models, ` +
      `${(intervals.length / 20).toFixed(intervals.length < 200 ? 1 : 0)} leave out 0 by chance on average; the verdicts above are corrected for that, and this table is not.`;
  }

  const stateOf = () => new URLSearchParams(location.hash.slice(1));

  const share = (first, second) => board.measures.some(({ values }) => first.key in values && second.key in values);

  // The chosen models; who chooses one gets another that it can be compared with. Names are decoded one by one, since a name may contain the comma between them.
  function chosenModels() {
    const given = /(?:^|&)models=([^&]*)/.exec(location.hash.slice(1))?.[1] ?? "";
    const found = given.split(",").map((name) => named(board.models, decodeURIComponent(name)));
    const first = found[0] ?? board.models[0];
    const others = board.models.filter((one) => one !== first);
    const second = others.find((one) => one === found[1]) ?? others.find((one) => share(first, one)) ?? others[0];
    return [first, second];
  }

  async function show(isOld) {
    const [first, second] = chosenModels();
    const others = board.models.filter((one) => one !== first);
    const [shared, apart] = [true, false].map((does) => others.filter((one) => share(first, one) === does));
    fill(models.first, board.models.map((one) => [one.key, one.name]), first.key);
    const lacking = apart.map((one) => [one.key, `${one.name}, no measure in common`]);
    fill(models.second, [...shared.map((one) => [one.key, one.name]), ...lacking], second.key);
    const found = await verdictsOn(first, second);
    if (isOld()) {
      return;
    }
    showVerdict(first, second, found);
    status.textContent = `${found.length} ${found.length === 1 ? "measure" : "measures"} compared`;
    await showGroups(first, second, stateOf(), isOld);
  }

  const update = drawer(root, status, show);

  for (const form of [models, choice]) {
    form.addEventListener("submit", (event) => event.preventDefault());
    form.addEventListener("change", (event) => {
      const state = new URLSearchParams();
      for (const [name, value] of new FormData(choice)) {
        // Metrics and groups of one table mean nothing in another.
        if (value !== "" && event.target.form === choice && (event.target.name !== "table" || name === "table")) {
          state.set(name, value);
        }
      }
      const one = models.first.value;
      const two = models.second.value === one ? chosenModels()[0].key : models.second.value;
      location.hash = `models=${one},${two}${state.size > 0 ? `&${state}` : ""}`;
    });
  }
  window.addEventListener("hashchange", update);

  root.hidden = false;
  load("models.json")
    .then((found) => {
      board = found;
      if (board.models.length < 2) {
        models.hidden = true;
        status.textContent = "Two models are needed, and this board has fewer.";
        return;
      }
      update();
    })
    .catch((error) => {
      status.textContent = failure(error);
    });
})();
