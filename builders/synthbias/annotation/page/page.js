"use strict";

const byId = (id) => document.getElementById(id);
let turn = null;
let answers = {};
let current = 0;
let busy = false;

function element(name, className, text) {
  const made = document.createElement(name);
  if (className) made.className = className;
  if (text !== undefined) made.textContent = text;
  return made;
}

// Offsets count characters as Python does, not the halves of characters that a string of JavaScript has.
function showSentence(place, sentence) {
  const signs = Array.from(sentence.text);
  const nodes = [];
  let end = 0;
  for (const [from, to, kind] of sentence.marks) {
    nodes.push(document.createTextNode(signs.slice(end, from).join("")));
    nodes.push(element(kind === "pronoun" ? "mark" : "span", kind, signs.slice(from, to).join("")));
    end = to;
  }
  nodes.push(document.createTextNode(signs.slice(end).join("")));
  place.replaceChildren(...nodes);
}

async function send(path, body) {
  const options = body === undefined ? {} : {
    method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body),
  };
  const reply = await fetch(path, options);
  const value = await reply.json().catch(() => ({ error: `the server said ${reply.status}; load the page again` }));
  if (!reply.ok) throw new Error(value.error);
  return value;
}

async function act(path, body, note) {
  if (busy) return;
  busy = true;
  byId("error").textContent = "";
  try {
    take(await send(path, body), note);
  } catch (error) {
    byId("error").textContent = error instanceof TypeError
      ? "The server does not answer. Start it again, and open the address that it prints." : error.message;
  } finally {
    busy = false;
  }
}

function take(next, note) {
  const before = turn;
  turn = next;
  answers = {};
  current = 0;
  if (before && before.phase === "entrance" && next.phase === "items") note = `Test passed: ${next.entrance}.`;
  byId("note").textContent = note || "";
  // Whoever opened the instructions while the answer was under way is reading them.
  show(byId("instructions").hidden ? "work" : "instructions");
}

function show(wanted) {
  const ended = turn.sentence === null;
  const section = wanted === "instructions" ? wanted : ended ? "end" : "work";
  for (const name of ["instructions", "work", "end"]) byId(name).hidden = name !== section;
  byId("title").textContent = { entrance: "Test", items: "Sentences" }[turn.phase] || "Annotation";
  byId("bar").max = Math.max(turn.total, 1);
  byId("bar").value = turn.done;
  byId("count").textContent = turn.total ? `${turn.done} of ${turn.total}` : "";
  byId("test-note").hidden = turn.phase !== "entrance";
  byId("help").hidden = section === "instructions";
  byId("end-undo").disabled = !turn.can_undo;
  if (section === "end") showEnd();
  if (section === "work") showWork();
  // The page is read from its top.
  if (section === "instructions") byId("start").focus({ preventScroll: true });
}

function showEnd() {
  const texts = {
    done: ["Done", "No sentence is left for you. Thank you. You can close the page."],
    failed: ["Test not passed", `${turn.reason}. Thank you for your time. The test cannot be repeated.`],
    excluded: ["No further votes", "Your votes are no longer counted. Ask whoever gave you this address."],
  };
  const [title, text] = texts[turn.phase] || texts.done;
  byId("end-title").textContent = title;
  byId("end-text").textContent = text;
}

const isOpen = (place) => place === 0 || answers.coherent === "yes";

function showWork() {
  showSentence(byId("sentence"), turn.sentence);
  const rows = turn.sentence.questions.map((question, place) => {
    const row = element("div", "question");
    row.classList.toggle("current", place === current);
    row.classList.toggle("closed", !isOpen(place));
    row.append(element("p", "", question.text));
    const choices = element("div", "choices");
    for (const [answer, key] of [["yes", "Y"], ["no", "N"]]) {
      const button = element("button", answers[question.name] === answer ? "chosen" : "", `${answer} `);
      button.type = "button";
      button.disabled = !isOpen(place);
      button.setAttribute("aria-pressed", String(answers[question.name] === answer));
      button.setAttribute("aria-label", `${answer}: ${question.text}`);
      if (place === current) button.append(element("kbd", "", key));
      button.addEventListener("click", () => choose(place, answer));
      choices.append(button);
    }
    row.append(choices);
    return row;
  });
  byId("questions").replaceChildren(...rows);
  byId("undo").disabled = !turn.can_undo && !Object.keys(answers).length;
}

function choose(place, answer) {
  if (busy || !isOpen(place)) return;
  const questions = turn.sentence.questions;
  answers[questions[place].name] = answer;
  if (answers.coherent === "no") answers = { coherent: "no" };
  const left = questions.findIndex((question, at) => isOpen(at) && !(question.name in answers));
  byId("note").textContent = "";
  if (left === -1) {
    showWork();
    act("vote", { item_id: turn.sentence.item_id, answers });
    return;
  }
  current = left;
  showWork();
}

function move(step) {
  const next = current + step;
  if (next >= 0 && next < turn.sentence.questions.length && isOpen(next)) {
    current = next;
    showWork();
  }
}

// The answers of this sentence go first; then the sentence before is asked again.
function undo() {
  if (busy) return;
  if (Object.keys(answers).length) {
    answers = {};
    current = 0;
    showWork();
  } else if (turn.can_undo) {
    act("undo", {}, "Your answers to this sentence were taken back.");
  }
}

function onKey(event) {
  if (event.ctrlKey || event.metaKey || event.altKey || !turn) return;
  const inInstructions = !byId("instructions").hidden;
  const key = event.key.length === 1 ? event.key.toLowerCase() : event.key;
  const working = !inInstructions && turn.sentence !== null;
  // Enter on a button presses that button.
  if (inInstructions && key === "Enter" && event.target.tagName !== "BUTTON") show("work");
  else if (!inInstructions && key === "?") show("instructions");
  else if (working && !event.repeat && (key === "y" || key === "n")) choose(current, key === "y" ? "yes" : "no");
  else if (working && (key === "ArrowDown" || key === "ArrowUp")) move(key === "ArrowDown" ? 1 : -1);
  else if (!inInstructions && !event.repeat && ["ArrowLeft", "u", "Backspace"].includes(key)) undo();
  else return;
  event.preventDefault();
}

function showExamples(examples) {
  byId("examples").replaceChildren(...examples.map((example) => {
    const box = element("div", "example");
    const text = element("p");
    showSentence(text, example);
    box.append(text);
    example.questions.forEach((question, place) => {
      if (example.answers[place]) {
        const line = element("p", "", `${question.text} `);
        line.append(element("b", "", example.answers[place]));
        box.append(line);
      }
    });
    box.append(element("p", "why", example.why));
    return box;
  }));
}

async function begin() {
  byId("start").addEventListener("click", () => show("work"));
  byId("help").addEventListener("click", () => show("instructions"));
  byId("undo").addEventListener("click", undo);
  byId("end-undo").addEventListener("click", undo);
  document.addEventListener("keydown", onKey);
  try {
    showExamples(await send("instructions"));
    turn = await send("turn");
  } catch (error) {
    byId("error").textContent = error.message;
    return;
  }
  // Whoever comes back has read them.
  show(turn.done === 0 && !turn.can_undo ? "instructions" : "work");
}

begin();
