"use strict";

// Shared by the pages that choose among tables and results (explorer.js, compare.js), and the choice of rows of any
// table for Compare. Names and texts come from strangers: they reach a page as text nodes and never as markup.

const bbChoosing = (() => {
  // Gives a text in which characters that are not seen, or that turn others around, are escapes, as on every other page.
  function visible(text) {
    return text.replace(/[^\P{C}\n\t]|[\p{Zl}\p{Zp}]/gu, (one) => {
      const code = one.codePointAt(0);
      const [mark, digits] = code < 0x100 ? ["x", 2] : code < 0x10000 ? ["u", 4] : ["U", 8];
      return `\\${mark}${code.toString(16).padStart(digits, "0")}`;
    });
  }

  // Unpacks a file, unless a server that says what packed it has let the browser do so.
  function unpacked(bytes) {
    const packed = new Uint8Array(bytes, 0, Math.min(2, bytes.byteLength)).join() === "31,139";
    const body = new Response(bytes).body;
    return new Response(packed ? body.pipeThrough(new DecompressionStream("gzip")) : body).text();
  }

  // Returns a function that fetches a JSON file of a folder, each file once; packed ones end in ".gz".
  function loader(folder, ending = "") {
    const fetched = new Map();
    return (path) => {
      if (!fetched.has(path)) {
        const fetching = fetch(folder + path + ending).then((answer) => {
          if (!answer.ok) {
            throw new Error(`${path}: ${answer.status}`);
          }
          return answer.arrayBuffer().then(unpacked);
        });
        const asked = fetching.then((text) =>
          JSON.parse(text, (_, value) => (typeof value === "string" ? visible(value) : value)),
        );
        asked.catch(() => fetched.delete(path));
        fetched.set(path, asked);
      }
      return fetched.get(path);
    };
  }

  function element(name, text, className) {
    const made = document.createElement(name);
    if (text !== undefined) {
      made.textContent = text;
    }
    if (className !== undefined) {
      made.className = className;
    }
    return made;
  }

  // Gives a select its options, pairs of value and label, and chooses one; the first if there is no such value.
  function fill(select, options, chosen) {
    select.replaceChildren(
      ...options.map(([value, label]) => {
        const option = element("option", label);
        option.value = value;
        return option;
      }),
    );
    select.value = chosen ?? "";
    if (select.selectedIndex < 0) {
      select.selectedIndex = 0;
    }
  }

  // Returns a function that draws a page by its latest choice: a slow answer to an earlier one must not overwrite it.
  // Readers of the screen, and tests, are told while a part of the page is not yet that of the choice.
  function drawer(part, status, show) {
    let newest = 0;
    return () => {
      const mine = (newest += 1);
      part.setAttribute("aria-busy", "true");
      show(() => mine !== newest)
        .catch((error) => {
          status.textContent = failure(error);
        })
        .finally(() => {
          if (mine === newest) {
            part.removeAttribute("aria-busy");
          }
        });
    };
  }

  function failure(error) {
    return location.protocol === "file:"
      ? "Browsers do not let a page that was opened from disk read files. Serve the site with: biasboard serve"
      : `The files of this page could not be loaded (${error.message}). Load it again.`;
  }

  // Finds a model by its key or, as in links from tables, by its name.
  function named(models, name) {
    return models.find((one) => one.key === name) ?? models.find((one) => one.id === name);
  }

  const words = (text) => text.replaceAll("_", " ");

  // Gives readers' names of a group and of a value of it: those of the benchmark, or the words of its own.
  const groupName = ({ group_names: names }, key) => words(names[key] ?? key);
  const valueName = ({ group_names: names }, key, value) => names[`${key}: ${value}`] ?? words(value);

  // Gives a name without that of its maker.
  function short(label) {
    return label.replace(/^[^\s(]*\//u, "");
  }

  function listed(names) {
    return names.length < 2 ? names.join("") : `${names.slice(0, -1).join(", ")} and ${names.at(-1)}`;
  }

  return { loader, element, fill, drawer, failure, named, short, listed, words, groupName, valueName };
})();

// Each row of a model gets a box to tick; two to five of them open Compare. Rows say their model in data-bb-model.
(() => {
  const rows = [...document.querySelectorAll("tr[data-bb-model]")];
  if (new Set(rows.map((row) => row.dataset.bbModel)).size < 2) {
    return;
  }
  const { element, short } = bbChoosing;
  const MOST = 5;
  let chosen = [];
  const bar = element("div", undefined, "bb-chosen");
  const words = element("span");
  words.setAttribute("role", "status");
  const link = element("a", "Compare", "bb-chosen-link");
  const clear = element("button", "Clear");
  clear.type = "button";
  bar.append(words, link, clear);
  bar.hidden = true;
  document.body.append(bar);

  function show() {
    for (const row of rows) {
      const box = row.querySelector(".bb-choose input");
      box.checked = chosen.includes(row.dataset.bbModel);
      box.disabled = chosen.length === MOST && !box.checked;
    }
    const root = new URL(document.querySelector("link[href$='assets/board.css']").href);
    link.href = new URL(`../compare.html#models=${chosen.map(encodeURIComponent).join(",")}`, root).href;
    link.hidden = chosen.length < 2;
    const names = chosen.map((model) => rows.find((row) => row.dataset.bbModel === model).querySelector("th a").textContent);
    link.textContent = `Compare ${chosen.length} models`;
    words.textContent = names.length === 1 ? `${names[0]}: choose one to four more models` : `${bbChoosing.listed(names)}${names.length === MOST ? ", the most that fit" : ""}`;
    bar.hidden = chosen.length === 0;
  }

  for (const row of rows) {
    const label = element("label", undefined, "bb-choose");
    const box = element("input");
    box.type = "checkbox";
    box.autocomplete = "off";
    box.setAttribute("aria-label", `Compare ${short(row.dataset.bbModel)}`);
    box.title = "Choose two to five models to compare";
    box.addEventListener("change", () => {
      const others = chosen.filter((one) => one !== row.dataset.bbModel);
      chosen = box.checked ? [...others, row.dataset.bbModel] : others;
      show();
    });
    label.append(box);
    row.querySelector("th").prepend(label);
  }
  clear.addEventListener("click", () => {
    chosen = [];
    show();
  });
})();
