"use strict";
// Views (neurons in a plane, weights, gates as a tree, signals as bars) and error curves.
const RADIUS = "Distance from the center: norm of the projection of the unit weight vector (1 on the circle).";
// Captions of the view of neurons by number of hidden directions; 3 means three or more.
const PLANES = {
  1: `Dots: unit weight vectors of the neurons, projected onto the plane of the hidden direction and a random direction. ${RADIUS}`,
  2: `Dots: unit weight vectors of the neurons, projected onto the plane of both hidden directions. ${RADIUS}`,
  3: "Each hidden direction is drawn as a point on the circle (star). A neuron is drawn at the sum of these points, each multiplied by the cosine between the neuron and that direction. This is not a projection; a dot may lie outside the circle.",
};
const VIEWS = {
  plane: {
    name: "Neurons", fits: frame => !!frame.places, draw: drawPlane,
    caption: frame => `${PLANES[Math.min(frame.hidden, 3)]} Filled stars: hidden directions; hollow stars: their opposites. Color: sign of the second-layer weight (blue +, orange −). Size: norm of the weights. Overlapping dots are shifted by a few pixels.`,
    without: "Dots: unit weight vectors of the neurons, projected onto the plane of the first two principal directions of the inputs (stars; hollow: their opposites), since the data has no known hidden directions. Distance from the center: norm of the projection of the unit weight vector (1 on the circle). Color: sign of the second-layer weight (blue +, orange −). Size: norm of the weights.",
  },
  tiles: {
    name: "Weights", fits: frame => !!frame.tiles, draw: drawTiles,
    caption: "Rows: neurons of the first seed. Columns: the hidden directions, then random ones. Color: sign of the cosine between neuron and direction (blue +, orange −); opacity: its absolute value. Bars: mean |cosine| over the neurons. An empty row has zero weights.",
    without: "Rows: neurons of the first seed. Columns: the first 20 encoded columns of the table. Color: sign of the entry of the unit weight vector (blue +, orange −); opacity: its absolute value. Bars: means over the neurons.",
  },
  tree: {
    name: "Gates", fits: frame => !!frame.tree, draw: drawTree,
    caption: "Tree of the first seed. Circle: correct function of the inputs, up to sign. Square: wrong function, with the target's gate in parentheses. Diamond: no influence on the output of the circuit. Opacity: how clearly the gate decides (smallest |output| over its four input patterns).",
  },
  signals: {
    name: "Signals", fits: frame => Object.keys(frame.signals || {}).length > 0, draw: drawSignals,
    caption: "Regression coefficients of the network output on F and on G(F). Bars: mean over seeds; rings: single seeds; dashed line: fully learned.",
  },
};

function drawPlane(sheet, a, b, fraction, trail) {
  const seeds = b.places.length, side = columns => Math.min(sheet.width / columns, sheet.height / Math.ceil(seeds / columns));
  const columns = [1, 2, 3].reduce((best, count) => side(count) > side(best) ? count : best), rows = Math.ceil(seeds / columns);
  const cell = Math.min(sheet.width / columns, sheet.height / rows), radius = Math.max(8, cell / 2 - 22);
  const longest = Math.max(1e-9, ...b.lengths.flat().filter(value => value !== null));
  for (let seed = 0; seed < seeds; seed++) {
    const cx = (seed % columns + 0.5) * sheet.width / columns, cy = (Math.floor(seed / columns) + 0.5) * sheet.height / rows;
    sheet.ring(cx, cy, radius, color("rule"), 1.2);
    sheet.text(`seed ${seedName(seed)}`, cx - radius, cy - radius - 4, { size: 12, fill: color("soft") });
    const stars = b.stars[seed];
    for (let k = 0; k < stars.length; k += 2) {
      const norm = Math.hypot(stars[k], stars[k + 1]) || 1, x = stars[k] / norm * radius, y = stars[k + 1] / norm * radius;
      sheet.star(cx + x, cy - y, 13, color("star"), false);
      sheet.star(cx - x, cy + y, 13, color("star"), true);
    }
    const now = b.places[seed], before = a.places[seed], votes = b.votes[seed], lengths = b.lengths[seed];
    for (const past of trail) {
      const old = past.places[seed];
      for (let k = 0; k < now.length; k += 2) if (old[k] !== null && old[k + 1] !== null) {
        sheet.pen.globalAlpha = 0.10;
        sheet.dot(cx + old[k] * radius, cy - old[k + 1] * radius, 1.5, color("soft"));
      }
    }
    sheet.pen.globalAlpha = 0.82;
    for (let k = 0; k < now.length; k += 2) {
      const x = interpolate(before[k], now[k], fraction), y = interpolate(before[k + 1], now[k + 1], fraction), vote = votes[k / 2];
      if (x === null || y === null) continue;
      const size = 2.2 + 3.3 * Math.sqrt(Math.min(1, interpolate(a.lengths[seed][k / 2], lengths[k / 2], fraction) / longest));
      // Overlapping neurons are shifted by a few pixels to stay visible.
      const turn = k * 2.39996, off = 7 * Math.sqrt(k / now.length) * Math.min(1, Math.hypot(x, y));
      sheet.dot(cx + x * radius + off * Math.cos(turn), cy - y * radius + off * Math.sin(turn), size, color(vote > 0 ? "plus" : vote < 0 ? "minus" : "none"));
    }
    sheet.pen.globalAlpha = 1;
  }
}

function drawTiles(sheet, a, b, fraction) {
  const rows = b.tiles.length, columns = b.tiles[0].length, left = 12, top = 74, bottom = 8;
  const width = (sheet.width - 2 * left) / (columns + 0.6), height = Math.min((sheet.height - top - bottom) / rows, 22);
  const hidden = b.ground_truth ? b.hidden : 0, x = column => left + (column + (column >= hidden ? 0.6 : 0)) * width;
  for (let column = 0; column < columns; column++) {
    let strength = 0;
    for (let row = 0; row < rows; row++) {
      const value = interpolate(a.tiles[row][column], b.tiles[row][column], fraction) ?? 0;
      strength += Math.abs(value) / rows;
      sheet.pen.globalAlpha = Math.min(1, 0.04 + Math.abs(value));
      sheet.pen.fillStyle = color(value >= 0 ? "plus" : "minus");
      sheet.pen.fillRect(x(column) + 0.5, top + row * height + 0.5, width - 1, height - 1);
    }
    sheet.pen.globalAlpha = 1;
    sheet.pen.fillStyle = color(column < hidden ? "star" : "none");
    sheet.pen.fillRect(x(column) + 1, top - 6 - 44 * strength, width - 2, 44 * strength);
  }
  if (!hidden) { sheet.text("columns of the input", x(0), 14, { size: 12, fill: color("soft") }); return; }
  sheet.text(hidden > 1 ? "hidden directions" : "hidden direction", x(0), 14, { size: 12, fill: color("star"), bold: true });
  sheet.text("other directions", Math.max(x(hidden), x(0) + 125), 14, { size: 12, fill: color("soft") });
}

function drawTree(sheet, a, b) {
  const tree = b.tree, gates = tree.gates.length, depth = Math.log2(gates + 1), bottom = 24, top = 26;
  const y = level => top + level * (sheet.height - top - bottom) / depth, x = (level, place) => (place + 0.5) / 2 ** level * sheet.width;
  for (let level = 0; level < depth; level++) for (let child = 0; child < 2 ** (level + 1); child++) {
    sheet.line([[x(level, child >> 1), y(level)], [x(level + 1, child), y(level + 1)]], color("rule"), 1.5);
  }
  for (let level = 0; level < depth; level++) for (let place = 0; place < 2 ** level; place++) {
    const gate = 2 ** level - 1 + place, status = tree.status[gate], cx = x(level, place), cy = y(level), pen = sheet.pen;
    const fill = color(status > 0 ? "right" : status < 0 ? "minus" : "none");
    pen.globalAlpha = 0.25 + 0.75 * Math.min(1, tree.sure[gate]);
    pen.fillStyle = fill; pen.beginPath();
    if (status > 0) pen.arc(cx, cy, 11, 0, 2 * Math.PI);
    else if (status < 0) pen.rect(cx - 10, cy - 10, 20, 20);
    else { pen.moveTo(cx, cy - 12); pen.lineTo(cx + 12, cy); pen.lineTo(cx, cy + 12); pen.lineTo(cx - 12, cy); pen.closePath(); }
    pen.fill(); pen.globalAlpha = 1;
    const size = 2 ** level > 4 && sheet.width < 520 ? 9 : 12;
    sheet.text(tree.gates[gate], cx, cy - 15, { align: "center", size, bold: true });
    if (status < 0) sheet.text(`(${tree.wanted[gate]})`, cx, cy + 24, { align: "center", size: size - 1, fill: color("soft") });
  }
  for (let leaf = 0; leaf <= gates; leaf++) sheet.text(`x${leaf + 1}`, x(depth, leaf), sheet.height - 6, { align: "center", size: gates > 8 ? 10 : 12, fill: color("soft") });
}

function drawSignals(sheet, a, b, fraction) {
  const names = Object.keys(b.signals), left = 12, right = 44, bottom = sheet.height - 34, group = bottom / names.length;
  const x = value => left + Math.max(0, Math.min(1.15, value)) / 1.15 * (sheet.width - left - right);
  sheet.line([[x(1), 4], [x(1), bottom]], color("soft"), 1, [4, 4]);
  for (const tick of [0, 0.5, 1]) sheet.text(String(tick), x(tick), bottom + 14, { align: tick ? "center" : "left", size: 12, fill: color("soft") });
  sheet.text("regression coefficient", x(0.5), bottom + 30, { align: "center", size: 12, fill: color("soft") });
  names.forEach((name, index) => {
    const y = index * group;
    sheet.text(name, left, y + 18, { bold: true, fill: armColor(index) });
    [["base", "F"], ["composite", "G(F)"]].forEach(([part, label], row) => {
      const now = b.signals[name][part], before = (a.signals[name] || b.signals[name])[part];
      const value = interpolate(mean(before), mean(now), fraction) ?? 0, height = Math.min(34, (group - 30) / 2 - 6), at = y + 26 + row * (height + 6);
      sheet.pen.globalAlpha = row ? 0.55 : 0.9; sheet.pen.fillStyle = armColor(index);
      sheet.pen.fillRect(left, at, Math.max(1, x(value) - left), height); sheet.pen.globalAlpha = 1;
      for (const one of now) if (one !== null) sheet.ring(x(one), at + height / 2, 3, color("ink"), 1.3);
      sheet.text(`${label} ${value.toFixed(2)}`, Math.max(x(value), x(Math.max(0, ...now.filter(one => one !== null)))) + 8, at + height / 2 + 4, { size: 12 });
    });
  });
}

function captionOf(view, frame) {
  if (frame.ground_truth === false && view.without) return view.without;
  return typeof view.caption === "function" ? view.caption(frame) : view.caption;
}

function errorLabel(unit) { return unit === "%" ? "test error (%)" : "mean squared test error"; }

function drawCurves(sheet, frames, cursor, run) {
  sheet.clear();
  if (!frames.length || !run) return;
  const last = run.last, position = step => Math.log1p(step), shown = Math.min(frames.length - 1, Math.ceil(cursor));
  let highest = 0;
  for (const frame of frames) for (const values of Object.values(frame.errors)) for (const value of values) if (value !== null) highest = Math.max(highest, value);
  for (const errors of Object.values(run.baselines)) if (errors) for (const value of errors) if (value !== null) highest = Math.max(highest, value);
  highest = run.unit === "%" ? Math.min(100, Math.max(10, highest)) : highest || 1;
  const marks = [0, 1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000].filter(step => step < last * 0.75);
  const spacing = sheet.width < 360 ? 0.13 : 0.085, ticks = [[position(last), String(last)]];
  for (const step of marks.reverse()) if (ticks.every(([x]) => Math.abs(x - position(step)) > spacing * position(last))) ticks.push([position(step), String(step)]);
  const axes = drawAxes(sheet, { xs: [0, position(last)], ys: [0, highest * 1.04], ticks, title: errorLabel(run.unit), label: "gradient step (log scale)", top: 20 });
  Object.keys(run.baselines).forEach((name, index) => {
    const errors = run.baselines[name];
    if (!errors || !errors.length) return;
    const level = mean(errors);
    if (level !== null) sheet.line([[axes.left, axes.y(level)], [axes.left + axes.width, axes.y(level)]], armColor(run.learners.length + index), 2, [7, 5]);
  });
  run.learners.forEach((name, index) => {
    const seeds = run.seeds.length, dash = run.fixed.includes(name) ? [7, 5] : [];
    for (let seed = 0; seed < seeds && seeds > 1; seed++) {
      sheet.pen.globalAlpha = 0.28;
      sheet.line(frames.slice(0, shown + 1).map(frame => point(frame, frame.errors[name]?.[seed])), armColor(index), 1, dash);
      sheet.pen.globalAlpha = 1;
    }
    sheet.line(frames.slice(0, shown + 1).map(frame => point(frame, frame.errors[name] ? mean(frame.errors[name]) : null)), armColor(index), 2.6, dash);
  });
  const at = position(frames[shown].step);
  sheet.line([[axes.x(at), axes.top], [axes.x(at), axes.top + axes.height]], color("soft"), 1, [2, 3]);
  function point(frame, value) { return value === null || value === undefined ? null : [axes.x(position(frame.step)), axes.y(Math.min(value, highest * 1.04))]; }
}

function drawGap(sheet, found, names, label, unit) {
  sheet.clear();
  const values = Object.keys(found);
  if (!values.length) return;
  const all = values.flatMap(value => Object.values(found[value]).map(mean)).filter(value => value !== null);
  const highest = unit === "%" ? Math.max(10, ...all) : Math.max(...all, 1e-9);
  const sorted = values.slice().sort((a, b) => Number(a) - Number(b));
  const axes = drawAxes(sheet, { xs: [-0.3, sorted.length - 0.7], ys: [0, highest * 1.05], ticks: sorted.map((value, index) => [index, value]), label, title: errorLabel(unit), top: 20 });
  names.forEach((name, index) => {
    const points = sorted.map((value, position) => found[value][name] ? [axes.x(position), axes.y(mean(found[value][name]) ?? 0)] : null);
    sheet.line(points, armColor(index), 2.4, index ? [7, 5] : []);
    for (const at of points) if (at) sheet.dot(at[0], at[1], 4, armColor(index));
  });
}
