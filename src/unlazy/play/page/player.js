"use strict";
// Player: state, controls and connection. A recording plays without a server.
const $ = id => document.getElementById(id);
const recording = JSON.parse($("recording").textContent), opening = JSON.parse($("opening").textContent);
const calm = matchMedia("(prefers-reduced-motion: reduce)"), dark = matchMedia("(prefers-color-scheme: dark)");
const state = {
  presets: recording ? [recording.preset] : opening.presets, preset: null, values: {}, run: null, number: 0, frames: [], cursor: 0, playing: false, view: null,
  socket: null, reported: -1, left: -1, gap: {}, gapSizes: {}, gapNames: [], painted: 0, fps: 0, dirty: true, finished: false, messages: [],
};
const view = new Sheet($("view")), curves = new Sheet($("curves")), gapChart = new Sheet($("gap-chart"));
function seedName(index) { return state.run ? state.run.seeds[index] : index; }

// Presets and sliders.
function fillPresets() {
  const groups = recording ? [["Recording", state.presets]] : [["Walkthroughs", state.presets.filter(p => p.id !== p.title)], ["Tasks", state.presets.filter(p => p.id === p.title)]];
  for (const [name, presets] of groups) {
    const group = document.createElement("optgroup"); group.label = name;
    for (const preset of presets) group.append(new Option(preset.id === preset.title ? preset.id : `${preset.title} (${preset.id})`, preset.id));
    if (presets.length) $("preset").append(group);
  }
}
function choose(id, values = {}) {
  state.preset = state.presets.find(preset => preset.id === id);
  state.values = Object.fromEntries(state.preset.sliders.map(slider => [slider.name, values[slider.name] ?? slider.default]));
  $("preset").value = id; $("title").textContent = state.preset.title; $("about").textContent = state.preset.about;
  $("gap").hidden = !state.preset.gap || !!recording; $("gap-status").textContent = ""; state.gap = {}; state.view = state.preset.view;
  if (state.preset.gap) $("grow").textContent = `Train at ${state.preset.gap.label.split(",")[0]} = ${state.preset.gap.values.join(", ")}`;
  reset(); fillSliders(); showGap(); send({ do: "try", preset: id, values: state.values });
}
function reset() {
  state.left = recording ? -1 : state.number;
  Object.assign(state, { run: null, frames: [], cursor: 0, playing: false, reported: -1, dirty: true, finished: false, messages: [] });
  $("walkthrough").textContent = ""; $("summary").textContent = ""; $("status").textContent = recording ? "" : "Press Start.";
  $("legend").tBodies[0].replaceChildren(); showTransport();
}
function fillSliders() {
  const box = $("sliders"); box.replaceChildren();
  for (const slider of state.preset.sliders) {
    const part = document.createElement("div"), id = "slider-" + slider.name.replace(/\W/g, "-"); part.className = "slider"; part.dataset.name = slider.name;
    const label = document.createElement("label"); label.htmlFor = id; label.append(slider.label);
    if (slider.live) { const bolt = document.createElement("span"); bolt.className = "bolt"; bolt.textContent = "\u26A1"; bolt.title = "applies immediately"; bolt.setAttribute("aria-label", "applies immediately"); label.append(bolt); }
    const row = document.createElement("div"); row.className = "row"; const value = state.values[slider.name];
    let inputs;
    if (slider.kind === "choice") { const select = document.createElement("select"); for (const choice of slider.choices) select.append(new Option(choice, choice)); select.value = value; inputs = [select]; }
    else if (slider.kind === "switch") { const tick = document.createElement("input"); tick.type = "checkbox"; tick.checked = value === true || value === "true"; inputs = [tick]; }
    else {
      const range = document.createElement("input"), number = document.createElement("input"); range.type = "range"; number.type = "number";
      for (const input of [range, number]) { input.min = slider.low; input.max = slider.high; input.step = slider.step; input.value = value; }
      range.setAttribute("aria-label", slider.label); number.step = "any"; inputs = [number, range];
    }
    inputs[0].id = id; inputs[0].setAttribute("aria-describedby", id + "-error");
    const error = document.createElement("p"); error.className = "error"; error.id = id + "-error"; error.setAttribute("role", "alert");
    for (const input of inputs) {
      input.disabled = !!recording;
      input.addEventListener(slider.kind === "choice" || slider.kind === "switch" ? "change" : "input", () => {
        const now = slider.kind === "switch" ? input.checked : slider.kind === "choice" ? input.value : input.value.trim();
        for (const other of inputs) if (other !== input) other.value = now;
        moved(slider, now);
      });
    }
    row.append(...inputs.slice().reverse()); part.append(label, row, error);
    if (slider.why) { const why = document.createElement("p"); why.className = "soft"; why.textContent = slider.why; part.append(why); }
    box.append(part);
  }
}
let waiting = null;
function moved(slider, value) {
  state.values[slider.name] = slider.kind === "choice" || slider.kind === "switch" || value === "" || Number.isNaN(Number(value)) ? value : Number(value);
  clearTimeout(waiting);
  waiting = setTimeout(() => {
    const command = { preset: state.preset.id, values: state.values, field: slider.name };
    if (state.run) send({ do: "change", index: Math.floor(state.cursor), ...command }); else send({ do: "try", ...command });
  }, 150);
}
function refuse(field, message) {
  for (const part of document.querySelectorAll(".slider")) {
    const wrong = part.dataset.name === field;
    part.querySelector(".error").textContent = wrong ? message : "";
    for (const input of part.querySelectorAll("input, select")) if (wrong) input.setAttribute("aria-invalid", "true"); else input.removeAttribute("aria-invalid");
  }
  if (message && !field) $("status").textContent = message;
}

// Connection to the server.
function send(command) { if (state.socket && state.socket.readyState === WebSocket.OPEN) state.socket.send(JSON.stringify(command)); }
function connect(ready) {
  const socket = state.socket = new WebSocket(`ws://${location.host}/live${location.search}`);
  socket.onopen = ready;
  socket.onmessage = event => receive(JSON.parse(event.data));
  socket.onclose = () => { state.playing = false; $("status").textContent = "Connection lost. Restart `unlazy play` and reload."; showTransport(); };
}
function receive(message) {
  // Ignore messages of earlier runs and of presets that are no longer selected.
  if (message.run !== undefined && (message.run < state.number || message.run <= state.left)) return;
  switch (message.type) {
    case "begun": begin(message); break;
    case "frame": take(message); break;
    case "rewound": state.frames.length = Math.min(state.frames.length, message.index + 1); state.cursor = Math.min(state.cursor, message.index); state.finished = false; state.playing = true; break;
    case "changed": refuse(null, ""); showCommands(message.commands); $("status").textContent = `Resumed from step ${state.frames[message.index].step} with the new value.`; for (const name in state.run.baselines) state.run.baselines[name] = null; break;
    case "fits": refuse(null, ""); showCommands(message.commands); break;
    case "refused": refuse(message.field, message.message); break;
    case "baseline": if (state.run) { state.run.baselines[message.name] = message.errors; state.messages.push(message); } break;
    case "gap": (state.gap[message.at] ??= {})[message.name] = message.errors; (state.gapSizes[message.at] ??= {})[message.name] = message.n; if (!state.gapNames.includes(message.name)) state.gapNames.push(message.name); showGap(); break;
    case "gap-done": $("gap-status").textContent = "Finished."; $("grow").disabled = false; break;
    case "background-error": $("gap-status").textContent = message.message; $("grow").disabled = false; break;
    case "status": state.number = message.run; $("status").textContent = message.text; break;
    case "done": state.finished = true; $("status").textContent = "Training finished."; break;
    case "broken": $("status").textContent = "Error: " + message.message; break;
  }
  state.dirty = true;
}
function begin(message) {
  state.number = message.run;
  Object.assign(state, { run: { ...message, baselines: { ...message.baselines } }, frames: [], cursor: 0, reported: -1, finished: false, playing: true, messages: [message] });
  refuse(null, ""); showCommands(message.commands);
}
function take(frame) {
  state.frames[frame.index] = frame;
  $("scrub").max = Math.max(frame.count - 1, 1);
  if (frame.index === 0) showTabs();
}

// Display.
function shownView() {
  const fitting = Object.keys(VIEWS).filter(name => VIEWS[name].fits(state.frames[0]));
  return fitting.includes(state.view) ? state.view : fitting[0] ?? null;
}
function showTabs() {
  const fitting = Object.keys(VIEWS).filter(name => VIEWS[name].fits(state.frames[0]));
  const shown = shownView();
  $("tabs").replaceChildren(...fitting.map(name => {
    const button = document.createElement("button"); button.type = "button"; button.textContent = VIEWS[name].name; button.setAttribute("aria-pressed", String(name === shown));
    button.onclick = () => { state.view = name; showTabs(); state.dirty = true; }; return button;
  }));
  $("caption").textContent = shown ? captionOf(VIEWS[shown], state.frames[0]) : "The directions that this task hides are unknown, or the learner has no neurons: only error curves are shown.";
}
function showCommands(commands) {
  $("commands").querySelector("div").replaceChildren(...Object.entries(commands).flatMap(([title, text]) => {
    const name = document.createElement("p"), row = document.createElement("div"), code = document.createElement("code"), copy = document.createElement("button");
    name.textContent = title[0].toUpperCase() + title.slice(1) + ":"; row.className = "command"; code.textContent = text; copy.type = "button"; copy.textContent = "Copy";
    copy.onclick = async () => { try { await navigator.clipboard.writeText(text); copy.textContent = "Copied"; } catch { getSelection().selectAllChildren(code); } };
    row.append(code, copy); return [name, row];
  }));
}
function showTransport() {
  const end = state.finished && state.cursor >= state.frames.length - 1;
  $("play").textContent = state.playing && !end ? "Pause" : !state.run ? "Start" : end ? "Replay" : "Resume";
  $("scrub").value = Math.floor(state.cursor); $("back").disabled = state.cursor <= 0; $("step").disabled = !state.run || end;
  $("share").disabled = !state.frames.length || !!recording; $("share").hidden = !!recording; $("again").hidden = !!recording;
  const frame = state.frames[Math.floor(state.cursor)];
  if (frame) $("scrub").setAttribute("aria-valuetext", `step ${frame.step}`);
}
function showWords() {
  const frame = state.frames[Math.floor(state.cursor)];
  if (!frame || !state.run) return;
  const progress = frame.step / Math.max(1, state.run.last), line = state.run.walkthrough.filter(([from]) => progress >= from).pop();
  if (line && $("walkthrough").textContent !== line[1]) $("walkthrough").textContent = line[1];
  $("summary").textContent = frame.summary;
  const rows = [...state.run.learners.map((name, index) => [name, frame.errors[name], armColor(index), state.run.fixed.includes(name)]),
    ...Object.entries(state.run.baselines).map(([name, errors], index) => [state.run.baseline_n === state.run.n ? name : `${name} (n = ${state.run.baseline_n.toLocaleString("en")})`, errors, armColor(state.run.learners.length + index), true])];
  $("legend").caption.textContent = `${errorLabel(state.run.unit)}, mean over ${state.run.seeds.length} seed${state.run.seeds.length > 1 ? "s" : ""}, n\u00a0=\u00a0${state.run.n.toLocaleString("en")}${state.run.seeds.length > 1 ? "; thin lines: single seeds" : ""}`;
  const group = (title, fixed) => { const tr = document.createElement("tr"), th = document.createElement("th"); tr.className = "group"; th.colSpan = 2; th.scope = "rowgroup"; th.textContent = title; tr.append(th); return [tr, ...rows.filter(row => row[3] === fixed).map(legendRow)]; };
  $("legend").tBodies[0].replaceChildren(...(rows.some(row => !row[3]) ? group("Learned features", false) : []), ...(rows.some(row => row[3]) ? group("Fixed features", true) : []));
  function legendRow([name, errors, paint, dashed]) {
    const row = document.createElement("tr"), head = document.createElement("th"), cell = document.createElement("td"), swatch = document.createElement("span");
    head.scope = "row"; swatch.className = dashed ? "swatch dashed" : "swatch"; swatch.style.borderTopColor = paint; head.append(swatch, name);
    cell.textContent = !errors ? "…" : !errors.length ? "not applicable to this task" : formatted(mean(errors)) + (state.run.unit === "%" ? " %" : "");
    row.append(head, cell); return row;
  }
}
function showGap() {
  const values = Object.keys(state.gap);
  $("gap-chart").hidden = $("gap-table").hidden = !values.length;
  if (!values.length) { state.gapNames = []; return; }
  gapChart.fit(); drawGap(gapChart, state.gap, state.gapNames, state.preset.gap.label, state.run ? state.run.unit : "%");
  const row = (cells, tag) => { const tr = document.createElement("tr"); cells.forEach((text, index) => { const cell = document.createElement(index ? tag : "th"); cell.textContent = text; tr.append(cell); }); return tr; };
  $("gap-table").tHead.replaceChildren(row([state.preset.gap.label, ...values], "th"));
  $("gap-table").tBodies[0].replaceChildren(...state.gapNames.map((name, index) => { const tr = row([name, ...values.map(value => state.gap[value][name] ? (state.gap[value][name].length ? `${formatted(mean(state.gap[value][name]))} (${state.gapSizes[value][name].toLocaleString("en")})` : "–") : "…")], "td"); tr.firstChild.style.color = armColor(index); return tr; }));
}
let before = performance.now(), counted = before, words = 0;
function paint(now) {
  requestAnimationFrame(paint);
  const elapsed = Math.min(now - before, 100); before = now; state.painted++;
  if (now - counted > 1000) { state.fps = state.painted * 1000 / (now - counted); state.painted = 0; counted = now; }
  const end = state.frames.length - 1;
  if (state.playing && end >= 0) {
    // The first frames are shown slowly: the network changes most there.
    const pace = Number($("speed").value) * (state.cursor < 3 && !calm.matches ? 0.12 : 1);
    const moved = Math.min(end, state.cursor + elapsed / 1000 * pace);
    if (moved !== state.cursor) { state.cursor = moved; state.dirty = true; }
    if (state.finished && state.cursor >= end) { state.playing = false; state.dirty = true; }
  }
  const position = Math.floor(state.cursor);
  if (position !== state.reported && end >= 0) { state.reported = position; send({ do: "seen", index: position }); }
  if (!state.dirty || end < 0) return;
  state.dirty = false;
  const a = state.frames[position], b = state.frames[Math.min(position + 1, end)], fraction = calm.matches ? 0 : state.cursor - position;
  view.clear();
  const drawn = shownView();
  if (drawn && VIEWS[drawn].fits(b)) VIEWS[drawn].draw(view, a, b, fraction, state.frames.slice(Math.max(0, position - 8), position));
  if (!state.playing || now - words > 90) { words = now; drawCurves(curves, state.frames, state.cursor, state.run); showWords(); showTransport(); } else state.dirty = true;
}

// Controls.
function start() { reset(); state.number += 1; send({ do: "start", preset: state.preset.id, values: state.values }); $("status").textContent = "Initializing …"; }
function toggle() {
  const end = state.frames.length - 1;
  if (!state.run) { if (!recording) start(); return; }
  if (state.finished && state.cursor >= end) { state.cursor = 0; state.playing = true; }
  else state.playing = !state.playing;
  state.dirty = true; showTransport();
}
function jump(position) { state.playing = false; state.cursor = Math.max(0, Math.min(state.frames.length - 1, position)); state.dirty = true; }
async function share() {
  state.playing = false; $("status").textContent = "Preparing the recording …";
  const found = { preset: state.preset, values: state.values, messages: [{ ...state.run, baselines: Object.fromEntries(Object.keys(state.run.baselines).map(name => [name, null])) }, ...state.frames, ...state.messages.filter(m => m.type === "baseline")] };
  const html = await (await fetch(location.href)).text(), inside = JSON.stringify(found).replace(/</g, "\\u003c");
  const made = html.replace(/(<script id="recording" type="application\/json">)null(<\/script>)/, (_, head, tail) => head + inside + tail)
    .replace(/(<script id="opening" type="application\/json">)[^<]*(<\/script>)/, (_, head, tail) => head + "null" + tail);
  const link = document.createElement("a"); link.href = URL.createObjectURL(new Blob([made], { type: "text/html" })); link.download = `unlazy-${state.preset.id.replace(/\W+/g, "-")}.html`;
  link.click(); URL.revokeObjectURL(link.href); $("status").textContent = `Saved ${link.download}, which plays offline.`;
}
$("play").onclick = toggle; $("back").onclick = () => jump(Math.ceil(state.cursor) - 1); $("step").onclick = () => jump(Math.floor(state.cursor) + 1);
$("again").onclick = start; $("share").onclick = share;
$("scrub").oninput = event => { jump(Number(event.target.value)); };
$("preset").onchange = event => { send({ do: "pause" }); choose(event.target.value); };
$("grow").onclick = () => { state.gap = {}; showGap(); $("grow").disabled = true; $("gap-status").textContent = "Training at each value …"; send({ do: "gap", preset: state.preset.id, values: state.values }); };
$("controls").onsubmit = event => event.preventDefault();
addEventListener("keydown", event => {
  if (event.ctrlKey || event.metaKey || event.altKey || /^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName)) return;
  const onButton = /^(BUTTON|SUMMARY)$/.test(event.target.tagName);
  if (event.key === " " && !onButton) { event.preventDefault(); toggle(); }
  else if (event.key === "ArrowLeft") jump(Math.ceil(state.cursor) - 1);
  else if (event.key === "ArrowRight") jump(Math.floor(state.cursor) + 1);
  else if (event.key === "Home") jump(0);
  else if (event.key === "End") jump(state.frames.length - 1);
  else if (event.key === "r" && !recording) start();
  else if (event.key === "s" && !recording && state.frames.length) share();
});
addEventListener("resize", () => { view.fit(); curves.fit(); showGap(); state.dirty = true; });
dark.addEventListener("change", () => { colorCache.clear(); state.dirty = true; showGap(); });
$("commands").addEventListener("toggle", () => { state.dirty = true; });

fillPresets();
if (recording) {
  choose(recording.preset.id, recording.values);
  for (const message of recording.messages) receive({ ...message, run: undefined, ...(message.type === "begun" ? { run: 0 } : {}) });
  state.finished = true; state.playing = !calm.matches;
} else {
  connect(() => { choose(opening.preset ?? state.presets[0].id, opening.values ?? {}); if (opening.start !== false) start(); });
}
requestAnimationFrame(paint);
