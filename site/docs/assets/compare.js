"use strict";

// Compares a model with up to four others: the verdicts of the tables on headline measures, and differences by group from
// draws that all models of a table share. Names come from strangers: they reach the page as text nodes, never as markup.

(() => {
  const root = document.querySelector("[data-bb-compare]");
  if (root === null) {
    return;
  }
  const NORMAL_95 = 1.959964;
  const LEVELS = 127;
  const MOST = 5;
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

  function addLead(cell, interval, reach, isApart) {
    cell.append(element(isApart ? "strong" : "span", number(interval.value, true)));
    if (interval.low !== null) {
      const range = `[${number(interval.low, true)}, ${number(interval.high, true)}]`;
      cell.append(" ", element("small", range), whisker(interval, reach));
    }
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

  // The comparisons of two models, seen from the first one, by the place of their measure.
  async function comparisonsOf(first, second) {
    const [one, other] = [first.key, second.key].sort();
    const file = share(first, second) ? await load(`pairs/${one}.json`) : {};
    const turned = one !== first.key;
    const seen = { first: turned ? "second" : "first", second: turned ? "first" : "second" };
    const minus = (end) => (end === null ? null : -end);
    return new Map(
      (file[other] ?? []).map(([place, lead, low, high, worst, best, p, outcome]) => [
        place,
        turned
          ? { value: -lead, low: minus(high), high: minus(low), worst: -best, best: -worst, p, outcome: seen[outcome] ?? outcome }
          : { value: lead, low, high, worst, best, p, outcome },
      ]),
    );
  }

  const measuresOf = (found) => [...found.keys()].map((place) => board.measures[place]);

  function sentence(first, second, found) {
    const line = element("p");
    const of = (outcome) => [...found].filter(([, one]) => one.outcome === outcome).map(([place]) => board.measures[place].label);
    const titles = [...new Set(measuresOf(found).map((one) => one.benchmark))];
    const n = `${found.size} ${found.size === 1 ? "measure" : "measures"}`;
    line.append("Compared with ", element("strong", second.name), ` over ${n} of ${listed(titles)}, `);
    line.append(element("strong", first.name), " is ");
    const parts = [
      ["separably better in", of("first")],
      ["separably worse in", of("second")],
      ["not to be told apart in", of("tied")],
      ["not compared in", of("unknown")],
    ].filter(([, some], place) => place < 2 || some.length > 0);
    parts.forEach(([said, some], place) => {
      const names = some.length > 0 ? `: ${listed(some)}` : "";
      line.append(place === 0 ? "" : "; ", `${said} `, element("strong", String(some.length)), names);
    });
    line.append(".");
    return line;
  }

  // Says of models that know no more than a coin that being even is no merit: one of them may be "better" than the other.
  function unable(chosen, measures) {
    const titles = new Map();
    for (const { benchmark, useless } of measures) {
      titles.set(benchmark, [...(titles.get(benchmark) ?? []), ...useless]);
    }
    const parts = [...titles].flatMap(([title, useless]) => {
      const names = chosen.filter((one) => useless.includes(one.key)).map((one) => one.name);
      return names.length > 0 ? [`${listed(names)} on ${title}`] : [];
    });
    const text =
      `Not shown to know more than a useless predictor, such as a coin: ${parts.join("; ")}. ` +
      "A coin treats everybody alike, so being even is no merit there.";
    return parts.length > 0 ? [element("p", text, "bb-note bb-warning")] : [];
  }

  function apart(first, second) {
    const having = [first, second].map((one) => `${one.name} has results in ${listed(one.benchmarks)}.`);
    return element(
      "p",
      `${first.name} and ${second.name} have no headline measure under the same conditions, so none is compared. ` +
        `${having.join(" ")} In one benchmark, results on other data, or by another prompt, are not the same measure.`,
    );
  }

  function judged(first, second, measure, one) {
    const said = {
      first: `${first.name} is better`,
      second: `${second.name} is better`,
      tied: "cannot be told apart",
      unknown: "no interval, so not compared",
    };
    const cell = element("td");
    cell.append(element("div", said[one.outcome]));
    if (one.p !== null) {
      const p = one.p < 0.001 ? "< .001" : `= ${one.p.toFixed(3).replace(/^0/, "")}`;
      cell.append(element("small", `p ${p} for all pairs at once`));
    }
    if (one.outcome === "tied" && (one.low > 0 || one.high < 0)) {
      // The lead, and the pair's own interval moved to it, where missing answers are at their worst for who leads.
      const least = one.low > 0 ? one.worst : one.best;
      const turns = one.low > 0 ? one.low - (one.value - least) <= 0 : one.high + (least - one.value) >= 0;
      const chance = "of so many pairs, some differ so by chance";
      const isMoved = number(least, true) !== number(one.value, true);
      const both = isMoved ? `with missing answers at their worst the lead is ${number(least, true)}; ${chance}` : chance;
      cell.append(element("small", turns ? "missing answers leave it open" : both, "bb-reason"));
    }
    const winner = { first, second }[one.outcome];
    if (winner !== undefined && measure.useless.includes(winner.key)) {
      cell.append(element("small", "and is not shown to beat a useless predictor", "bb-reason"));
    }
    return cell;
  }

  function showVerdicts(first, others, found) {
    const places = [...new Set(found.flatMap((one) => [...one.keys()]))].sort((one, other) => one - other);
    const compared = places.map((place) => board.measures[place]);
    measured.hidden = places.length === 0;
    verdict.hidden = false;
    const lines = others.map((other, which) => (found[which].size > 0 ? sentence(first, other, found[which]) : apart(first, other)));
    verdict.replaceChildren(...unable([first, ...others], compared), ...lines);
    const level = root.querySelector("[data-bb-level]");
    if (places.length === 0) {
      level.textContent = "";
      return;
    }
    // Of the others the lines above say all there is to say.
    const shown = others.filter((_, which) => found[which].size > 0);
    const reach = reachOf(found.flatMap((one) => [...one.values()]).filter((one) => one.low !== null));
    const rows = places.map((place) => {
      const measure = board.measures[place];
      const name = document.createDocumentFragment();
      const link = element("a", measure.label);
      link.href = measure.page;
      link.title = measure.sentence;
      name.append(link, element("small", measure.benchmark));
      const value = (model) => (model.key in measure.values ? number(measure.values[model.key], measure.is_signed) : "not asked");
      const cells = shown.flatMap((other) => {
        const one = found[others.indexOf(other)].get(place);
        if (one === undefined) {
          return [value(other), "not compared"];
        }
        const isApart = one.outcome === "first" || one.outcome === "second";
        return [value(other), addLead(judged(first, other, measure, one), one, reach, isApart)];
      });
      return [name, value(first), ...cells];
    });
    const headings = shown.flatMap((other) => [other.name, `Lead of ${first.name} over ${other.name}`]);
    table(measured, ["Measure", first.name, ...headings], rows);
    level.textContent =
      "Better is nearer to the ideal value, and the lead, below the verdict, is how much nearer; its interval of 95 % is of that pair alone. " +
      "A verdict is more careful: it is that of the whole table, where of many pairs some differ by chance, and it counts " +
      "missing answers at their worst. Measures that are no headlines have no verdict; by group, the table below shows them. In each measure, one table of equal models in twenty has a false verdict. All were asked the same: " +
      `${listed([...new Set(compared.map((one) => one.conditions))])}.`;
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

  async function showGroups(first, others, state, isOld) {
    const chosen = [first, ...others];
    const shared = board.tables.filter((one) => chosen.every((model) => one.results.some((result) => result.model === model.key)));
    tables.hidden = shared.length === 0;
    if (shared.length === 0) {
      return;
    }
    const of = shared.find((one) => one.id === state.get("table")) ?? shared[0];
    const results = chosen.map((model) => of.results.find((result) => result.model === model.key));
    const files = await Promise.all(results.map((result) => load(`${of.id}/${result.id}.json`)));
    if (isOld()) {
      return;
    }
    const place = Math.max(0, of.metrics.findIndex((one) => one.label === state.get("metric")));
    const metric = of.metrics[place];
    const [values, ...ofOthers] = files.map(decoded);
    const own = [...values.values()].filter((slice) => slice.metric === place);
    const keys = [...new Set(own.map((slice) => slice.key))].filter((key) => key !== "");
    const group = keys.includes(state.get("group")) ? state.get("group") : "";
    fill(choice.table, shared.map((one) => [one.id, one.name]), of.id);
    fill(choice.metric, of.metrics.map((one) => [one.label, one.label]), metric.label);
    fill(choice.group, [["", "all items and every group"], ...keys.map((key) => [key, groupName(of, key)])], group);
    const found = own
      .filter((slice) => group === "" || slice.key === "" || slice.key === group)
      .map((slice) => {
        const same = ofOthers.map((other) => other.get(JSON.stringify([slice.metric, slice.key, slice.group])));
        return { slice, same, intervals: same.map((other) => (other === undefined ? null : difference(slice, other))) };
      });
    const intervals = found.flatMap((row) => row.intervals).filter((one) => one !== null);
    const reach = reachOf(intervals);
    const isApart = ({ low, high }) => low > 0 || high < 0;
    const rows = found.map(({ slice, same, intervals: ofRow }) => [
      slice.key === "" ? "all items" : `${groupName(of, slice.key)}: ${valueName(of, slice.key, slice.group)}`,
      number(slice.value, metric.is_signed),
      ...same.flatMap((other, which) => [
        other === undefined ? "unknown" : number(other.value, metric.is_signed),
        ofRow[which] === null ? "unknown" : addLead(element("td"), ofRow[which], reach, isApart(ofRow[which])),
      ]),
    ]);
    grouped.querySelector("caption span").textContent = `${metric.label}: ${metric.text}`;
    table(grouped, ["Group", first.name, ...others.flatMap((one) => [one.name, `${first.name} minus ${one.name}`])], rows);
    root.querySelector("[data-bb-note]").textContent =
      `${intervals.filter(isApart).length} of ${intervals.length} intervals leave out 0. They are of 95 %, from the standard deviation of ` +
      `${board.n_draws} paired draws, and so differ a little from those above. Of ${intervals.length} intervals between equal models, ` +
      `${(intervals.length / 20).toFixed(intervals.length < 200 ? 1 : 0)} leave out 0 by chance on average; the verdicts above are corrected for that, and this table is not.`;
  }

  const stateOf = () => new URLSearchParams(location.hash.slice(1));

  const share = (first, second) => board.measures.some(({ values }) => first.key in values && second.key in values);

  // The chosen models; who chooses one gets another that it can be compared with. Names are decoded one by one, since a name may contain the comma between them.
  function chosenModels() {
    const given = /(?:^|&)models=([^&]*)/.exec(location.hash.slice(1))?.[1] ?? "";
    const found = given.split(",").map((name) => named(board.models, decodeURIComponent(name)));
    const first = found[0] ?? board.models[0];
    const others = [...new Set(found.slice(1))].filter((one) => one !== undefined && one !== first).slice(0, MOST - 1);
    if (others.length > 0) {
      return [first, ...others];
    }
    const left = board.models.filter((one) => one !== first);
    return [first, left.find((one) => share(first, one)) ?? left[0]];
  }

  const selects = () => Array.from(models.elements).filter((one) => one.name === "model");

  async function show(isOld) {
    const [first, ...others] = chosenModels();
    selects().forEach((select, place) => {
      const own = place === 0 ? first : others[place - 1];
      const taken = [first, ...others].filter((one) => one !== own);
      const free = board.models.filter((one) => place === 0 || !taken.includes(one));
      const [shared, lacking] = [true, false].map((does) => free.filter((one) => (one === first || share(first, one)) === does));
      const options = [...shared.map((one) => [one.key, one.name]), ...lacking.map((one) => [one.key, `${one.name}, no measure in common`])];
      const all = place === 0 ? free.map((one) => [one.key, one.name]) : options;
      fill(select, place < 2 ? all : [["", "no other"], ...all], own?.key ?? "");
      select.parentElement.hidden = place > others.length + 1 || (place > 1 && board.models.length <= place);
    });
    const found = await Promise.all(others.map((one) => comparisonsOf(first, one)));
    if (isOld()) {
      return;
    }
    showVerdicts(first, others, found);
    const n = new Set(found.flatMap((one) => [...one.keys()])).size;
    status.textContent = `${n} ${n === 1 ? "measure" : "measures"} compared`;
    await showGroups(first, others, stateOf(), isOld);
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
      const [before] = chosenModels();
      const [one, ...rest] = selects().map((select) => select.value);
      // Who chooses as the first a model that is among the others changes places with it.
      const others = [...new Set(rest.map((key) => (key === one ? before.key : key)))].filter((key) => key !== "" && key !== one);
      location.hash = `models=${[one, ...others].join(",")}${state.size > 0 ? `&${state}` : ""}`;
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
