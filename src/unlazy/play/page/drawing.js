"use strict";
// Drawing on canvases, with the colors of the style sheet (light or dark scheme).
const colorCache = new Map();
function color(name) {
  if (!colorCache.has(name)) colorCache.set(name, getComputedStyle(document.documentElement).getPropertyValue("--" + name).trim());
  return colorCache.get(name);
}
function armColor(index) { return color("c" + (index % 8)); }

class Sheet {
  constructor(canvas) { this.canvas = canvas; this.pen = canvas.getContext("2d"); this.fit(); }
  fit() {
    const box = this.canvas.getBoundingClientRect(), ratio = Math.min(window.devicePixelRatio || 1, 2);
    this.width = Math.max(box.width, 50); this.height = Math.max(box.height, 50);
    this.canvas.width = Math.round(this.width * ratio); this.canvas.height = Math.round(this.height * ratio);
    this.pen.setTransform(ratio, 0, 0, ratio, 0, 0);
  }
  clear() { this.pen.clearRect(0, 0, this.width, this.height); }
  line(points, stroke, width = 1, dash = []) {
    const pen = this.pen; let drawing = false;
    pen.beginPath(); pen.setLineDash(dash); pen.strokeStyle = stroke; pen.lineWidth = width;
    for (const point of points) {
      if (point === null) { drawing = false; continue; }
      if (drawing) pen.lineTo(point[0], point[1]); else pen.moveTo(point[0], point[1]);
      drawing = true;
    }
    pen.stroke(); pen.setLineDash([]);
  }
  dot(x, y, radius, fill) { const pen = this.pen; pen.beginPath(); pen.fillStyle = fill; pen.arc(x, y, radius, 0, 2 * Math.PI); pen.fill(); }
  ring(x, y, radius, stroke, width = 1) {
    const pen = this.pen; pen.beginPath(); pen.strokeStyle = stroke; pen.lineWidth = width; pen.arc(x, y, radius, 0, 2 * Math.PI); pen.stroke();
  }
  star(x, y, radius, fill, hollow) {
    const pen = this.pen; pen.beginPath();
    for (let k = 0; k < 10; k++) {
      const r = k % 2 ? radius * 0.42 : radius, angle = -Math.PI / 2 + k * Math.PI / 5;
      pen.lineTo(x + r * Math.cos(angle), y + r * Math.sin(angle));
    }
    pen.closePath(); pen.lineWidth = 1.5; pen.strokeStyle = fill; pen.fillStyle = fill;
    if (!hollow) pen.fill();
    pen.stroke();
  }
  text(string, x, y, { align = "left", size = 13, fill = color("ink"), base = "alphabetic", bold = false } = {}) {
    const pen = this.pen; pen.font = `${bold ? "600 " : ""}${size}px system-ui, sans-serif`; pen.fillStyle = fill;
    pen.textAlign = align; pen.textBaseline = base; pen.fillText(string, x, y);
  }
}

function mean(values) { const real = values.filter(value => value !== null); return real.length ? real.reduce((a, b) => a + b, 0) / real.length : null; }
function interpolate(a, b, fraction) { return a === null || b === null || a === undefined || b === undefined ? b ?? a : a + (b - a) * fraction; }
function formatted(value) { return value === null ? "diverged" : Math.abs(value) >= 100 ? value.toFixed(0) : Math.abs(value) >= 10 ? value.toFixed(1) : value.toFixed(2); }

// Axes with ranges `xs` and `ys`; `ticks` are [x, label]. Returns the scales and the plot area.
function drawAxes(sheet, { left = 46, right = 20, top = 10, bottom = 38, xs, ys, ticks, title, label }) {
  const width = sheet.width - left - right, height = sheet.height - top - bottom;
  const x = value => left + width * (value - xs[0]) / Math.max(xs[1] - xs[0], 1e-9);
  const y = value => top + height * (1 - (value - ys[0]) / Math.max(ys[1] - ys[0], 1e-9));
  const raw = (ys[1] - ys[0]) / 4, power = 10 ** Math.floor(Math.log10(raw)), step = [1, 2, 5, 10].map(k => k * power).find(k => k >= raw);
  for (let value = Math.ceil(ys[0] / step) * step; value <= ys[1] + 1e-9; value += step) {
    sheet.line([[left, y(value)], [left + width, y(value)]], color("rule"));
    sheet.text(String(Number(value.toPrecision(6))), left - 6, y(value) + 4, { align: "right", size: 12, fill: color("soft") });
  }
  for (const [value, text] of ticks) sheet.text(text, x(value), top + height + 16, { align: "center", size: 12, fill: color("soft") });
  sheet.text(label, left + width / 2, sheet.height - 4, { align: "center", size: 12, fill: color("soft") });
  sheet.text(title, left, top + 2, { size: 12, fill: color("soft"), base: "bottom" });
  return { x, y, left, width, top, height };
}
