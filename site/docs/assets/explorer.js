"use strict";

// The explorer reads small files about all items of a table, and the texts only of those that it shows or searches.
// Texts come from strangers: they reach the page as text nodes and never as markup.

(() => {
  const PER_PAGE = 20;
  // On a phone, the first answer is not to be screens away.
  const MOST_GROUPS = matchMedia("(max-width: 30rem)").matches ? 4 : 12;
  const root = document.querySelector("[data-bb-explorer]");
  if (root === null) {
    return;
  }
  const { loader, element, fill, drawer, failure, named, words, groupName, valueName } = bbChoosing;
  const load = loader(root.dataset.bbExplorer, ".gz");
  const form = root.querySelector("form");
  const status = root.querySelector("[data-bb-status]");
  const list = root.querySelector(".bb-found");
  const pager = root.querySelector(".bb-pager");
  const worst = root.querySelector("[data-bb-worst]");
  const by = root.querySelector("[data-bb-by]");
  const absent = root.querySelector("[data-bb-absent]");
  const random = root.querySelector("[data-bb-random]");
  let board = null;
  let places = [];

  const count = (n) => n.toLocaleString("en");
  const percent = (share) => `${Math.round(100 * share)} %`;
  const state = () => new URLSearchParams(location.hash.slice(1));
  const WRONG = "wrong";

  function fillForm(table, model, tables, chosen) {
    const [having, lacking] = [true, false].map((has) => board.models.filter((one) => hasAnswers(one) === has));
    const options = [...having.map((one) => [one.key, one.name]), ...lacking.map((one) => [one.key, `${one.name}, answers not shown`])];
    fill(form.model, options, model.key);
    fill(form.table, tables.map((one) => [one.id, one.name]), table.id);
    root.querySelector("[data-bb-question]").textContent = table.question;
    const warning = root.querySelector("[data-bb-warning]");
    warning.hidden = table.warning === null;
    warning.textContent = table.warning === null ? "" : `${table.warning} They stay folded until you open them.`;
    form.q.value = chosen.get("q") ?? "";
  }

  function fillFilters(table, model, index, kinds, chosen) {
    const others = table.results.filter((one) => one.why_absent === null && one.model !== model.key).map((one) => one.model);
    const named = board.models.filter((one) => others.includes(one.key)).map((one) => [one.key, one.name]);
    fill(form.other, [["", "no other model"], ...named], chosen.get("other") ?? "");
    const given = board.kinds.filter((_, code) => kinds.includes(String(code)));
    fill(form.kind, [["any", "any"], ...given.map((name) => [name, name])], kindOf(chosen, kinds));
    form.order.value = chosen.get("order") ?? "";
    form.differ.checked = chosen.get("differ") === "1";
    form.querySelector("[data-bb-differ]").hidden = form.other.value === "";
    form.order.parentElement.hidden = !kinds.includes(codeOf(WRONG));
    const labels = index.groups.map((group) => {
      const name = groupName(table, group.key);
      const label = element("label", `${name[0].toUpperCase()}${name.slice(1)} `);
      const select = element("select");
      select.name = `group.${group.key}`;
      fill(select, [["", "any"], ...group.values.map((value) => [value, valueName(table, group.key, value)])], chosen.get(select.name) ?? "");
      label.append(select);
      return label;
    });
    form.querySelector("[data-bb-groups]").replaceChildren(...labels);
  }

  function choiceOf(changed) {
    const chosen = new URLSearchParams();
    const stays = { model: ["model", "table"], table: ["model", "table"] }[changed];
    for (const [name, value] of new FormData(form)) {
      if (value !== "" && (stays === undefined || stays.includes(name))) {
        chosen.set(name, value);
      }
    }
    if (stays === undefined && state().has("by")) {
      chosen.set("by", state().get("by"));
    }
    return chosen;
  }

  // What is shown unless a reader says otherwise: wrong answers, or all if none is wrong.
  function kindOf(chosen, kinds) {
    return chosen.get("kind") ?? (kinds.includes(codeOf(WRONG)) ? WRONG : "any");
  }

  const codeOf = (kind) => String(board.kinds.indexOf(kind));

  // The share of wrong answers in each value of a group, the largest first.
  function shares(group, kinds) {
    const counts = group.values.map((value) => ({ value, n: 0, wrong: 0 }));
    group.codes.forEach((code, place) => {
      if (code >= 0) {
        counts[code].n += 1;
        counts[code].wrong += kinds[place] === codeOf(WRONG) ? 1 : 0;
      }
    });
    return counts.filter(({ n }) => n > 0).sort((one, two) => two.wrong / two.n - one.wrong / one.n || two.n - one.n);
  }

  // How much more the values of a group differ than chance would make them, for each value more than one.
  function contrast(counts) {
    const n = counts.reduce((sum, one) => sum + one.n, 0);
    const share = counts.reduce((sum, one) => sum + one.wrong, 0) / n;
    const spread = counts.reduce((sum, one) => sum + one.n * (one.wrong / one.n - share) ** 2, 0);
    return counts.length < 2 || share === 0 || share === 1 ? 0 : spread / (share * (1 - share)) / (counts.length - 1);
  }

  // Chooses the group by which a model is most uneven, and shows where it is wrong most often.
  function showWorst(table, index, kinds, chosen) {
    const groups = index.groups.map((group) => ({ group, counts: shares(group, kinds) })).filter(({ counts }) => contrast(counts) > 0);
    groups.sort((one, two) => contrast(two.counts) - contrast(one.counts));
    worst.hidden = groups.length === 0;
    if (groups.length === 0) {
      return null;
    }
    const asked = groups.find(({ group }) => group.key === chosen.get("by")) ?? groups[0];
    fill(by, groups.map(({ group }) => [group.key, groupName(table, group.key)]), asked.group.key);
    const rows = asked.counts.map(({ value, n, wrong }) => {
      const row = element("li");
      const button = element("button", valueName(table, asked.group.key, value));
      button.type = "button";
      button.setAttribute("aria-pressed", String(chosen.get(`group.${asked.group.key}`) === value));
      button.addEventListener("click", () => {
        const next = state();
        const name = `group.${asked.group.key}`;
        if (next.get(name) === value) {
          next.delete(name);
        } else {
          next.set(name, value);
        }
        for (const one of ["page", "item"]) {
          next.delete(one);
        }
        choose(next);
      });
      const bar = element("span", undefined, "bb-wrong-share");
      bar.style.setProperty("--share", String(wrong / n));
      row.append(button, bar, ` ${percent(wrong / n)} wrong `, element("small", `${count(wrong)} of ${count(n)}`));
      return row;
    });
    const rest = rows.slice(MOST_GROUPS);
    const list = worst.querySelector("ol");
    list.replaceChildren(...rows.slice(0, MOST_GROUPS));
    if (rest.length > 0) {
      const fold = element("details");
      const inner = element("ol", undefined, "bb-worst");
      inner.append(...rest);
      fold.append(element("summary", `${rest.length} more, less often wrong`), inner);
      const holder = element("li");
      holder.append(fold);
      list.append(holder);
    }
    const ranks = new Map(asked.counts.map(({ value }, rank) => [asked.group.values.indexOf(value), rank]));
    return asked.group.codes.map((code) => ranks.get(code) ?? ranks.size);
  }

  function matching(table, index, chosen, kinds, others, ranks) {
    const groups = index.groups
      .filter((group) => chosen.has(`group.${group.key}`))
      .map((group) => [group.codes, group.values.indexOf(chosen.get(`group.${group.key}`))]);
    const kind = kindOf(chosen, kinds);
    const differ = others !== null && chosen.get("differ") === "1";
    const found = [];
    for (let place = 0; place < table.n; place += 1) {
      if (
        (kind === "any" || kinds[place] === codeOf(kind)) &&
        (!differ || kinds[place] !== others[place]) &&
        groups.every(([codes, value]) => codes[place] === value)
      ) {
        found.push(place);
      }
    }
    const order = chosen.get("order") ?? "";
    if (order === "missed") {
      found.sort((one, two) => index.n_wrong[two] - index.n_wrong[one] || one - two);
    } else if (order === "" && ranks !== null) {
      found.sort((one, two) => ranks[one] - ranks[two] || one - two);
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

  async function searched(table, results, among, text, isOld) {
    const wanted = text.toLocaleLowerCase();
    const found = [];
    const n = Math.ceil(table.n / table.per_file);
    const byFile = new Map();
    for (const place of among) {
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
    const order = new Map(among.map((place, number) => [place, number]));
    return found.sort((one, two) => order.get(one) - order.get(two));
  }

  // A text with what its reading rests on marked: pairs of offsets, in order.
  function marked(value, places) {
    const text = element("pre");
    let done = 0;
    for (const [start, end] of places) {
      text.append(value.slice(done, start), element("mark", value.slice(start, end)));
      done = end;
    }
    text.append(value.slice(done));
    text.dir = "auto";
    return text;
  }

  function texts(values, label, isFolded, marks = []) {
    const holder = document.createDocumentFragment();
    for (const [number, value] of values.entries()) {
      const text = marked(value ?? "", marks[number] ?? []);
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
    const text = element("dd");
    text.append(content);
    holder.append(element("dt", name), text);
  }

  function readingOf([outcomes, probabilities, answers], reason) {
    if (outcomes.length > 0) {
      const order = outcomes.map((_, place) => place).sort((one, two) => probabilities[two] - probabilities[one]);
      return order.map((place) => `${words(outcomes[place])} ${percent(Number(probabilities[place]))}`).join(", ");
    }
    const times = new Map();
    for (const answer of answers) {
      times.set(answer, (times.get(answer) ?? 0) + 1);
    }
    const read = [...times].map(([answer, n]) => (answers.length === 1 ? answer : `${answer} (${n} of ${answers.length})`));
    return read.join(", ") || reason || "nothing";
  }

  function answerLines(facts, table, options, kind, [logprobs, generated, reading, reason, marks], label) {
    const answer = element("span", undefined, `bb-kind bb-kind-${kind}`);
    // Where no answer is right, the kind says nothing that the answer does not.
    answer.append(...(kind === "answered" ? [] : [element("strong", kind), ": "]), readingOf(reading, reason));
    line(facts, label, answer);
    if (generated.some((one) => one !== null)) {
      const all = texts(generated, "Text of the model", table.warning !== null, marks);
      if (generated.length > 1) {
        const details = element("details");
        details.append(element("summary", `${generated.length} texts of the model`), all);
        line(facts, "In full", details);
      } else {
        line(facts, "In full", all);
      }
    }
    if (logprobs.some((one) => one.length > 0)) {
      const values = logprobs.map((one, asked) =>
        one.map((value, option) => `${(options[asked]?.[option] ?? "").trim()}: ${value ?? "no value"}`).join("\n"),
      );
      const details = element("details");
      details.append(element("summary", "Log-probabilities of the options"), texts(values, "", false));
      line(facts, "In full", details);
    }
  }

  function shown(table, index, results, kinds, place, { item, answers }) {
    const [name, target, prompts, options] = item;
    const holder = element("li");
    const facts = element("dl", undefined, "bb-example");
    line(facts, "Asked", texts(prompts, "Prompt", table.warning !== null));
    results.forEach((result, number) => {
      const kind = board.kinds[Number(kinds[number][place])];
      const label = results.length > 1 ? board.models.find((one) => one.key === result.model).name : "Answered";
      answerLines(facts, table, options, kind, answers[number], label);
    });
    if (target !== null) {
      line(facts, "Right", words(target));
    }
    const groups = index.groups.filter((group) => group.codes[place] >= 0);
    line(facts, "Groups", groups.map((group) => `${groupName(table, group.key)}: ${valueName(table, group.key, group.values[group.codes[place]])}`).join(" · "));
    const about = element("span");
    about.append(element("code", name));
    if (index.n_models > 1 && target !== null) {
      about.append(`, wrong in ${index.n_wrong[place]} of ${index.n_models} models`);
    }
    line(facts, "Item", about);
    holder.append(facts);
    return holder;
  }

  const hasAnswers = (model) =>
    board.tables.some((table) => table.results.some((one) => one.model === model.key && one.why_absent === null));

  // The chosen model, its tables and the chosen one of these: if none is chosen, the first with wrong answers.
  function chosenOf(chosen) {
    const asked = board.tables.find((one) => one.id === chosen.get("table"));
    const model =
      named(board.models, chosen.get("model")) ??
      board.models.find((one) => asked?.results[0].model === one.key) ??
      board.models.find(hasAnswers) ??
      board.models[0];
    const ofModel = (table) => table.results.find((one) => one.model === model.key);
    const tables = board.tables.filter((one) => ofModel(one) !== undefined);
    const table =
      tables.find((one) => one === asked) ??
      tables.find((one) => ofModel(one).n_wrong > 0) ??
      tables.find((one) => ofModel(one).why_absent === null) ??
      tables[0];
    return { model, tables, table, result: ofModel(table) };
  }

  function showAbsent(result) {
    const page = element("a", "The page of the result");
    page.href = result.page;
    absent.replaceChildren(`These answers are not shown: ${result.why_absent}. `, page, " has its values, by group, instead.");
    absent.hidden = false;
    worst.hidden = true;
    pager.hidden = true;
    list.replaceChildren();
    status.textContent = "";
  }

  async function show(isOld) {
    const chosen = state();
    const { model, tables, table, result } = chosenOf(chosen);
    fillForm(table, model, tables, chosen);
    form.querySelector("[data-bb-filters]").hidden = result.why_absent !== null;
    if (result.why_absent !== null) {
      showAbsent(result);
      return;
    }
    absent.hidden = true;
    const other = table.results.find((one) => one.model === chosen.get("other") && one !== result && one.why_absent === null);
    const results = other === undefined ? [result] : [result, other];
    // What most readers see first is asked for together with what tells where it is.
    paths(table, results, 0).forEach(load);
    const [whole, ...own] = await Promise.all([
      load(`${table.id}/index.json`),
      ...results.map((one) => load(`${table.id}/${one.id}/index.json`)),
    ]);
    if (isOld()) {
      return;
    }
    // What all items share is no choice.
    const index = { ...whole, groups: whole.groups.filter((group) => group.values.length > 1) };
    const kinds = own.map((one) => one.kinds);
    fillFilters(table, model, index, kinds[0], chosen);
    const ranks = showWorst(table, index, kinds[0], chosen);
    let found = matching(table, index, chosen, kinds[0], kinds[1] ?? null, ranks);
    if (chosen.get("q")) {
      found = await searched(table, results, found, chosen.get("q"), isOld);
    }
    if (found === null || isOld()) {
      return;
    }
    places = found;
    const item = chosen.has("item") ? Number(chosen.get("item")) : -1;
    const isAlone = Number.isInteger(item) && item >= 0 && item < table.n;
    const n_pages = isAlone ? 1 : Math.max(1, Math.ceil(places.length / PER_PAGE));
    const page = Math.min(Math.max(1, Number(chosen.get("page") ?? 1) || 1), n_pages);
    const here = isAlone ? [item] : places.slice((page - 1) * PER_PAGE, page * PER_PAGE);
    const rows = await Promise.all(here.map((place) => rowsAt(table, results, place)));
    if (isOld()) {
      return;
    }
    list.start = (page - 1) * PER_PAGE + 1;
    list.replaceChildren(...rows.map((row, at) => shown(table, index, results, kinds, here[at], row)));
    const kind = kindOf(chosen, kinds[0]);
    const what = kind === "any" ? "answers" : `${kind} answers`;
    status.textContent = isAlone
      ? `One of ${count(places.length)} ${what}`
      : `${count(places.length)} ${kind === "any" ? "" : `${kind} `}of ${count(table.n)} answers${ranks === null ? "" : `, ${form.order.selectedOptions[0].textContent}`}`;
    random.disabled = places.length === 0;
    random.textContent = isAlone ? "Show another" : `Show one ${kind === "any" ? "answer" : `${kind} answer`} at random`;
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
  by.addEventListener("change", () => {
    const chosen = state();
    chosen.set("by", by.value);
    choose(chosen);
  });
  random.addEventListener("click", () => {
    const chosen = choiceOf("item");
    chosen.set("item", String(places[Math.floor(Math.random() * places.length)]));
    choose(chosen);
    // On a narrow screen the answer would appear below the form, out of sight.
    if (status.getBoundingClientRect().bottom > window.innerHeight / 2) {
      status.scrollIntoView({ block: "start" });
    }
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
      board = found;
      if (board.tables.length === 0) {
        form.hidden = true;
        status.textContent = "No model has answers on this board.";
        return;
      }
      draw();
    })
    .catch((error) => {
      status.textContent = failure(error);
    });
})();
