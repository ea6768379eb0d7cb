"use strict";

// The explorer reads small files about all items of a table, and the texts only of those that it shows or searches.
// Texts come from strangers: they reach the page as text nodes and never as markup.

(() => {
  const PER_PAGE = 20;
  const root = document.querySelector("[data-bb-explorer]");
  if (root === null) {
    return;
  }
  const { loader, element, fill, drawer, failure } = bbChoosing;
  const load = loader(root.dataset.bbExplorer, ".gz");
  const form = root.querySelector("form");
  const status = root.querySelector("[data-bb-status]");
  const list = root.querySelector(".bb-found");
  const pager = root.querySelector(".bb-pager");
  let tables = [];
  let kindNames = [];

  const count = (n) => n.toLocaleString("en");
  const state = () => new URLSearchParams(location.hash.slice(1));

  function fillForm(table, index, chosen) {
    const models = table.results.map((result) => [result.key, result.model]);
    fill(form.table, tables.map((one) => [one.id, `${one.benchmark}: ${one.title}`]), table.id);
    fill(form.model, models, chosen.get("model"));
    fill(form.other, [["", "no other model"], ...models], chosen.get("other") ?? "");
    fill(form.kind, [["", "any"], ...kindNames.map((name, code) => [String(code), name])], chosen.get("kind") ?? "");
    form.order.value = chosen.get("order") ?? "";
    form.q.value = chosen.get("q") ?? "";
    form.differ.checked = chosen.get("differ") === "1";
    form.querySelector("[data-bb-differ]").hidden = form.other.value === "";
    form.order.parentElement.hidden = !index.n_wrong.some((n) => n > 0);
    const labels = index.groups.map((group) => {
      const name = (table.group_names[group.key] ?? group.key).replaceAll("_", " ");
      const label = element("label", `${name[0].toUpperCase()}${name.slice(1)} `);
      const select = element("select");
      select.name = `group.${group.key}`;
      const values = group.values.map((value) => [value, value.replaceAll("_", " ")]);
      fill(select, [["", "any"], ...values], chosen.get(select.name) ?? "");
      label.append(select);
      return label;
    });
    form.querySelector("[data-bb-groups]").replaceChildren(...labels);
    const warning = root.querySelector("[data-bb-warning]");
    warning.hidden = table.warning === null;
    warning.textContent = table.warning === null ? "" : `${table.warning} They stay folded until you open them.`;
  }

  function choiceOf(changed) {
    const chosen = new URLSearchParams();
    for (const [name, value] of new FormData(form)) {
      const stays = changed !== "table" || name === "table";
      if (value !== "" && stays) {
        chosen.set(name, value);
      }
    }
    return chosen;
  }

  function matching(table, index, chosen, kinds, others) {
    const groups = index.groups
      .filter((group) => chosen.has(`group.${group.key}`))
      .map((group) => [group.codes, group.values.indexOf(chosen.get(`group.${group.key}`))]);
    const kind = chosen.get("kind");
    const differ = others !== null && chosen.get("differ") === "1";
    const found = [];
    for (let place = 0; place < table.n; place += 1) {
      if (
        (kind === null || kinds[place] === kind) &&
        (!differ || kinds[place] !== others[place]) &&
        groups.every(([codes, value]) => codes[place] === value)
      ) {
        found.push(place);
      }
    }
    if (chosen.get("order") === "missed" && index.n_wrong.length > 0) {
      found.sort((one, two) => index.n_wrong[two] - index.n_wrong[one] || one - two);
    }
    return found;
  }

  const file = (table, place) => Math.floor(place / table.per_file);
  const paths = (table, results, number) => [
    `${table.id}/items-${number}.json`,
    ...results.map((result) => `${table.id}/${result.id}/answers-${number}.json`),
  ];

  async function rowsAt(table, results, place) {
    const [items, ...answers] = await Promise.all(paths(table, results, file(table, place)).map(load));
    const at = place % table.per_file;
    return { item: items.rows[at], answers: answers.map((one) => one.rows[at]) };
  }

  async function searched(table, results, places, text, isOld) {
    const wanted = text.toLocaleLowerCase();
    const found = [];
    const n = Math.ceil(table.n / table.per_file);
    const byFile = new Map();
    for (const place of places) {
      byFile.set(file(table, place), [...(byFile.get(file(table, place)) ?? []), place].slice(-table.per_file));
    }
    let done = 0;
    for (const [, inFile] of [...byFile].sort(([one], [two]) => one - two)) {
      for (const place of inFile) {
        const { item, answers } = await rowsAt(table, results, place);
        const [name, target, prompts] = item;
        const texts = [name, target ?? "", ...prompts, ...answers.flatMap((answer) => [...answer[1], answer[3] ?? ""])];
        if (texts.some((one) => (one ?? "").toLocaleLowerCase().includes(wanted))) {
          found.push(place);
        }
      }
      done += 1;
      if (isOld()) {
        return null;
      }
      status.textContent = `Searching: ${done} of ${n} files, ${count(found.length)} found`;
    }
    const order = new Map(places.map((place, number) => [place, number]));
    return found.sort((one, two) => order.get(one) - order.get(two));
  }

  function texts(values, label, isFolded) {
    const holder = document.createDocumentFragment();
    for (const value of values) {
      const text = element("pre", value ?? "");
      text.dir = "auto";
      if (isFolded || text.textContent.length > 1000) {
        const details = element("details");
        details.append(element("summary", `${label}, ${count(text.textContent.length)} characters`), text);
        holder.append(details);
      } else {
        holder.append(text);
      }
    }
    return holder;
  }

  function line(holder, name, content) {
    const told = element("dd");
    told.append(content);
    holder.append(element("dt", name), told);
  }

  function readingOf([outcomes, probabilities, answers], reason) {
    if (outcomes.length > 0) {
      return outcomes.map((name, place) => `${name} ${Number(probabilities[place]).toFixed(3)}`).join(", ");
    }
    const times = new Map();
    for (const answer of answers) {
      times.set(answer, (times.get(answer) ?? 0) + 1);
    }
    const told = [...times].map(([answer, n]) => (answers.length === 1 ? answer : `${answer} (${n} of ${answers.length})`));
    return told.join(", ") || reason || "nothing";
  }

  function shown(table, index, results, kinds, place, { item, answers }) {
    const [name, target, prompts, options] = item;
    const holder = element("li");
    const facts = element("dl", undefined, "bb-example");
    line(facts, "Item", element("code", name));
    line(facts, "Asked", texts(prompts, "Prompt", table.warning !== null));
    if (target !== null) {
      line(facts, "Right answer", target);
    }
    results.forEach((result, number) => {
      const [logprobs, generated, reading, reason] = answers[number];
      const kind = kindNames[Number(kinds[number][place])];
      const told = element("span");
      told.append(element("strong", kind), `: ${readingOf(reading, reason)}`);
      line(facts, results.length > 1 ? result.model : "Answer", told);
      if (generated.some((one) => one !== null)) {
        const all = texts(generated, "Text of the model", table.warning !== null);
        if (generated.length > 1) {
          const details = element("details");
          details.append(element("summary", `${generated.length} texts of the model`), all);
          line(facts, "Texts", details);
        } else {
          line(facts, "Text", all);
        }
      } else if (logprobs.some((one) => one.length > 0)) {
        const values = logprobs.map((one, asked) =>
          one.map((value, option) => `${(options[asked][option] ?? "").trim()}: ${value ?? "no value"}`).join("\n"),
        );
        const details = element("details");
        details.append(element("summary", "Log-probabilities of the options"), texts(values, "", false));
        line(facts, "", details);
      }
    });
    const groups = index.groups.filter((group) => group.codes[place] >= 0);
    const told = groups.map((group) => {
      const key = (table.group_names[group.key] ?? group.key).replaceAll("_", " ");
      return `${key}: ${group.values[group.codes[place]].replaceAll("_", " ")}`;
    });
    line(facts, "Groups", told.join(" · "));
    if (index.n_models > 1 && target !== null) {
      line(facts, "Wrong", `in ${index.n_wrong[place]} of ${index.n_models} models`);
    }
    holder.append(facts);
    return holder;
  }

  async function show(isOld) {
    const chosen = state();
    const table = tables.find((one) => one.id === chosen.get("table")) ?? tables[0];
    const result = table.results.find((one) => one.key === chosen.get("model")) ?? table.results[0];
    const other = table.results.find((one) => one.key === chosen.get("other") && one !== result);
    const results = other === undefined ? [result] : [result, other];
    // What most readers see first is asked for together with what tells where it is.
    paths(table, results, 0).forEach(load);
    const [index, ...own] = await Promise.all([
      load(`${table.id}/index.json`),
      ...results.map((one) => load(`${table.id}/${one.id}/index.json`)),
    ]);
    if (isOld()) {
      return;
    }
    const kinds = own.map((one) => one.kinds);
    fillForm(table, index, chosen);
    let places = matching(table, index, chosen, kinds[0], kinds[1] ?? null);
    if (chosen.get("q")) {
      places = await searched(table, results, places, chosen.get("q"), isOld);
    }
    if (places === null || isOld()) {
      return;
    }
    const n_pages = Math.max(1, Math.ceil(places.length / PER_PAGE));
    const page = Math.min(Math.max(1, Number(chosen.get("page") ?? 1) || 1), n_pages);
    const here = places.slice((page - 1) * PER_PAGE, page * PER_PAGE);
    const rows = await Promise.all(here.map((place) => rowsAt(table, results, place)));
    if (isOld()) {
      return;
    }
    list.start = (page - 1) * PER_PAGE + 1;
    list.replaceChildren(...rows.map((row, at) => shown(table, index, results, kinds, here[at], row)));
    status.textContent = `${count(places.length)} of ${count(table.n)} items`;
    pager.hidden = n_pages === 1;
    pager.querySelector("[data-bb-page]").textContent = `Page ${count(page)} of ${count(n_pages)}`;
    const [back, forth] = pager.querySelectorAll("button");
    back.disabled = page === 1;
    forth.disabled = page === n_pages;
  }

  const draw = drawer(list, status, show);

  function choose(chosen) {
    list.setAttribute("aria-busy", "true");
    if (location.hash.slice(1) === chosen.toString()) {
      draw();
    } else {
      location.hash = chosen.toString();
    }
  }

  let typing = 0;
  form.addEventListener("submit", (event) => event.preventDefault());
  form.addEventListener("change", (event) => choose(choiceOf(event.target.name)));
  form.q.addEventListener("input", () => {
    clearTimeout(typing);
    typing = setTimeout(() => choose(choiceOf("q")), 400);
  });
  form.addEventListener("reset", (event) => {
    event.preventDefault();
    const chosen = state();
    choose(new URLSearchParams([...chosen].filter(([name]) => ["table", "model", "other"].includes(name))));
  });
  pager.addEventListener("click", (event) => {
    const step = Number(event.target.dataset.bbStep ?? 0);
    if (step !== 0) {
      const chosen = state();
      chosen.set("page", String((Number(chosen.get("page")) || 1) + step));
      choose(chosen);
      status.scrollIntoView({ block: "start" });
    }
  });
  window.addEventListener("hashchange", draw);

  root.hidden = false;
  load("tables.json")
    .then((found) => {
      tables = found.tables;
      kindNames = found.kinds;
      if (tables.length === 0) {
        form.hidden = true;
        status.textContent = "No table has answers that may be shown.";
        return;
      }
      draw();
    })
    .catch((error) => {
      status.textContent = failure(error);
    });
})();
