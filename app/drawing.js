// Draws a figure of the app (traces and layout as plotly.graph_objects names them, of which it knows what the pages use) as SVG, in the reader's theme.
// Every text is set as text and never as markup.

const SVG = "http://www.w3.org/2000/svg";
const DASHES = { dash: "7 4", dot: "2 3", dashdot: "7 3 2 3" };
const BAND = 0.75; // of a bar's place
const SMALL = 11, MEDIUM = 12, LARGE = 14; // pixels of letters
const LINE = 18; // pixels of a row of words
const SUPERSCRIPTS = "⁰¹²³⁴⁵⁶⁷⁸⁹";

const make = (name, attributes, words) => {
  const node = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) if (value !== undefined && value !== null) node.setAttribute(key, value);
  if (words !== undefined) node.textContent = words;
  return node;
};
const at = (values, place) => (Array.isArray(values) ? values[place] : values);
const ENTITIES = { "&lt;": "<", "&gt;": ">", "&amp;": "&", "&#36;": "$", "&#37;": "%", "&#123;": "{" };
const read = (words) => String(words ?? "").replace(/<\/?(b|i|extra)>/g, "").replace(/&(lt|gt|amp|#36|#37|#123);/g, (found) => ENTITIES[found]);

const number = (value, decimals) =>
  (value < 0 ? "−" : "") + Math.abs(value).toLocaleString("en-US", { minimumFractionDigits: decimals, maximumFractionDigits: decimals });
const formatted = (value, format) => {
  if (typeof value !== "number") return read(value);
  const found = /^(,)?(?:\.(\d+))?([f%g])?$/.exec(format ?? "");
  if (!found || !format) return number(value, Number.isInteger(value) ? 0 : Math.min(6, Math.max(0, 3 - Math.floor(Math.log10(Math.abs(value))))));
  const decimals = Number(found[2] ?? 0);
  return found[3] === "%" ? `${number(100 * value, decimals)}%` : number(value, decimals);
};

// What a mark says: the trace's template, or else its text, or its numbers

const said = (trace, place) => {
  const kept = at(trace.hovertext, place);
  if (kept !== undefined) return (trace.hoverinfo === "text+name" ? `${read(trace.name)}<br>` : "") + kept;
  const values = { x: at(trace.x, place), y: at(trace.y, place), text: at(trace.text, place), customdata: at(trace.customdata, place) };
  return filled(trace, values);
};
const filled = (trace, values) => {
  const [template, extra] = (trace.hovertemplate ?? "%{x}: %{y}").split(/<extra>/);
  const words = template.replace(/%\{(\w+)(?:\[(\d+)\])?(?::([^}]*))?\}/g, (_, name, index, format) =>
    formatted(index === undefined ? values[name] : values[name]?.[index], format));
  const name = extra === undefined ? trace.name : extra.replace("</extra>", "");
  return name ? `${name}<br>${words}` : words;
};
const lines = (words) => words.split("<br>").map(read);

// Axes

class Axis {
  constructor(settings, values, based) {
    this.settings = settings;
    const names = values.filter((value) => typeof value === "string");
    this.kind = settings.type && settings.type !== "-" ? settings.type : names.length ? "category" : "linear";
    this.names = this.kind === "category" ? [...new Set(values.filter((value) => value !== null).map(String))] : [];
    const places = values.map((value) => this.place(value)).filter(Number.isFinite);
    let [low, high] = places.length ? [Math.min(...places), Math.max(...places)] : [0, 1];
    if (this.kind === "category") [low, high] = [-0.5, this.names.length - 0.5];
    else {
      if (based && this.kind === "linear") [low, high] = [Math.min(low, 0), Math.max(high, 0)];
      const room = (high - low || 1) * 0.05;
      [low, high] = [based && low === 0 ? 0 : low - room, based && high === 0 ? 0 : high + room];
    }
    [this.low, this.high] = settings.range ?? (settings.autorange === "reversed" ? [high, low] : [low, high]);
  }
  place(value) {
    if (this.kind === "category" && typeof value === "string") return this.names.indexOf(value);
    return value === null || value === undefined ? NaN : this.kind === "log" ? Math.log10(value) : Number(value);
  }
  share(value) {
    return this.shareOf(this.place(value));
  }
  shareOf(place) {
    return (place - this.low) / (this.high - this.low);
  }
  ticks(length, room) {
    const { tickvals, ticktext, tickformat } = this.settings;
    if (tickvals) return this.seen(tickvals.map((value, index) => [this.place(value), read(ticktext ? ticktext[index] : value)]));
    if (this.kind === "category") {
      const step = Math.max(1, Math.ceil((this.names.length * room) / length));
      return this.names.map((name, index) => [index, read(name)]).filter((_, index) => index % step === 0);
    }
    if (this.kind === "log") return this.seen(this.powers());
    const step = this.step(this.settings.nticks ?? Math.max(2, Math.floor(length / 55)));
    const decimals = Math.max(0, -Math.floor(Math.log10(step) + 1e-9));
    const [low, high] = [Math.min(this.low, this.high), Math.max(this.low, this.high)];
    const found = [];
    for (let tick = Math.ceil(low / step - 1e-9); tick * step <= high + step * 1e-9; tick++) {
      found.push([tick * step, tickformat ? formatted(tick * step, tickformat) : number(tick * step, decimals)]);
    }
    return found;
  }
  step(count) {
    const span = Math.abs(this.high - this.low), power = 10 ** Math.floor(Math.log10(span / count));
    return [1, 2, 5, 10].map((factor) => factor * power).find((step) => span / step <= count);
  }
  powers() {
    const found = [];
    for (let power = Math.floor(this.low); power <= this.high; power++) {
      for (const digit of this.settings.dtick === 1 ? [1] : [1, 2, 5]) {
        const words = Math.abs(power) < 5 ? formatted(digit * 10 ** power, power < 0 ? `.${-power}f` : ",") : `10${[...String(power)].map((one) => SUPERSCRIPTS[one] ?? "⁻").join("")}`;
        found.push([Math.log10(digit) + power, words]);
      }
    }
    return found;
  }
  seen(ticks) {
    const [low, high] = [Math.min(this.low, this.high), Math.max(this.low, this.high)];
    return ticks.filter(([place]) => place >= low - 1e-9 && place <= high + 1e-9);
  }
}

// Points

const star = (size) => Array.from({ length: 10 }, (_, n) => {
  const far = n % 2 ? size * 0.45 : size * 1.1, angle = (Math.PI * n) / 5;
  return `${far * Math.sin(angle)} ${-far * Math.cos(angle)}`;
}).join("L");
const OUTLINES = {
  circle: (s) => `M${-s} 0A${s} ${s} 0 1 0 ${s} 0A${s} ${s} 0 1 0 ${-s} 0Z`,
  diamond: (s) => `M0 ${-1.3 * s}L${1.3 * s} 0L0 ${1.3 * s}L${-1.3 * s} 0Z`,
  square: (s) => `M${-s} ${-s}H${s}V${s}H${-s}Z`,
  cross: (s) => `M${-s * 1.2} ${-s / 2.5}H${-s / 2.5}V${-s * 1.2}H${s / 2.5}V${-s / 2.5}H${s * 1.2}V${s / 2.5}H${s / 2.5}V${s * 1.2}H${-s / 2.5}V${s / 2.5}H${-s * 1.2}Z`,
  "triangle-up": (s) => `M0 ${-1.2 * s}L${1.2 * s} ${s}H${-1.2 * s}Z`,
  "triangle-right": (s) => `M${1.2 * s} 0L${-s} ${1.2 * s}V${-1.2 * s}Z`,
  "triangle-left": (s) => `M${-1.2 * s} 0L${s} ${1.2 * s}V${-1.2 * s}Z`,
  star: (s) => `M${star(s * 1.2)}Z`,
};
const point = (symbol, size, colour) => {
  const [, shape, open] = /^(.*?)(-open)?$/.exec(symbol ?? "circle");
  const turned = shape === "x" ? "rotate(45)" : undefined;
  const outline = (OUTLINES[shape === "x" ? "cross" : shape] ?? OUTLINES.circle)(size / 2);
  return make("path", { d: outline, transform: turned, fill: open ? "none" : colour, stroke: colour, "stroke-width": open ? 1.6 : 0 });
};

// A whole figure

class Drawing {
  constructor(spec, width, height, place, select) {
    Object.assign(this, { width, height, select, layout: spec.layout, traces: spec.data });
    const styles = getComputedStyle(place);
    const theme = (name) => styles.getPropertyValue(name).split(/,(?![^(]*\))/).map((colour) => colour.trim());
    [this.categorical, this.sequential] = [theme("--st-chart-categorical-colors"), theme("--st-chart-sequential-colors")];
    [this.ink, this.ground] = [styles.color, styles.getPropertyValue("--st-background-color").trim() || "#ffffff"];
    this.faint = styles.getPropertyValue("--st-border-color").trim() || "#80808060";
    this.family = styles.fontFamily;
    this.pen = document.createElement("canvas").getContext("2d");
    this.marks = [];
    this.svg = make("svg", { xmlns: SVG, width, height, viewBox: `0 0 ${width} ${height}`, "font-family": this.family, fill: this.ink });
    this.patterns = make("defs", {});
    this.svg.append(this.patterns);
    this.axes();
    this.frame();
    for (const panel of this.panels) this.panel(panel);
    for (const note of this.layout.annotations ?? []) this.note(note);
  }

  colour(value) {
    const place = /^#0000(\d\d)$/.exec(value ?? "");
    const found = place && Number(place[1]);
    return !value ? this.ink : found ? (found <= 10 ? this.categorical[found - 1] : this.sequential[found - 11]) ?? this.ink : value;
  }
  measure(words, size = MEDIUM) {
    this.pen.font = `${size}px ${this.family}`;
    return this.pen.measureText(words).width;
  }
  fitting(words, width, size = MEDIUM) {
    if (this.measure(words, size) <= width) return words;
    const letters = [...words];
    while (letters.length > 1 && this.measure(`${letters.join("")}…`, size) > width) letters.pop();
    return `${letters.join("")}…`;
  }
  write(words, x, y, { size = MEDIUM, anchor = "start", weight, turned } = {}) {
    const transform = turned ? `rotate(-90 ${x} ${y})` : undefined;
    this.svg.append(make("text", { x, y, "font-size": size, "text-anchor": anchor, "font-weight": weight, transform }, words));
  }

  axes() {
    const settings = (id) => this.layout[`${id[0]}axis${id.slice(1)}`] ?? {};
    const ids = [...new Set(this.traces.map((trace) => `${trace.xaxis ?? "x"} ${trace.yaxis ?? "y"}`))].map((both) => both.split(" "));
    const of = (id) => {
      const own = settings(id).matches ?? id, all = [], used = this.traces.filter((trace) => {
        const there = trace[`${id[0]}axis`] ?? id[0];
        return (settings(there).matches ?? there) === own;
      });
      let based = false;
      for (const trace of used) {
        const values = trace[id[0]] ?? [], across = trace.type === "bar" && (trace.orientation === "h") === (id[0] === "x");
        based ||= across;
        values.forEach((value, place) => {
          all.push(value);
          if (across && trace.base) all.push(at(trace.base, place), at(trace.base, place) + value);
          const error = trace[`error_${id[0]}`];
          if (error) all.push(value + error.array[place], value - (error.arrayminus ?? error.array)[place]);
        });
      }
      return new Axis({ ...settings(own), title: null, ...settings(id) }, all, based);
    };
    this.panels = (ids.length ? ids : [["x", "y"]]).map(([x, y]) => ({ ids: [x, y], x: of(x), y: of(y) }));
  }

  frame() {
    const named = this.traces.filter((trace) => trace.name && trace.showlegend !== false && trace.type !== "heatmap");
    this.entries = this.layout.showlegend === false || (named.length < 2 && !this.layout.showlegend) ? [] : named;
    const scale = this.traces.some((trace) => trace.type === "heatmap") ? 64 : 0;
    const rows = this.legend();
    this.top = this.heading();
    const under = this.panels.some((panel) => panel.x.settings.title?.text) ? LINE : 0;
    this.bottom = this.height - rows * LINE - (rows ? 8 : 2) - under - LINE;
    let labels = 0, titled = 0;
    for (const panel of this.panels) {
      const share = panel.y.settings.domain ?? [0, 1];
      panel.up = panel.y.settings.showticklabels === false ? [] : panel.y.ticks((share[1] - share[0]) * (this.bottom - this.top), 15);
      labels = Math.max(labels, ...panel.up.map(([, words]) => this.measure(words, SMALL)));
      titled ||= panel.y.settings.title?.text ? LINE : 0;
    }
    this.labels = Math.min(labels, this.width * 0.42);
    this.left = 4 + titled + this.labels + 8;
    this.right = this.width - 10 - scale;
    this.titles = under;
  }
  heading() {
    const { title } = this.layout;
    if (!title?.text) return 10;
    this.write(this.fitting(read(title.text), this.width - 44, LARGE), 0, 15, { size: LARGE, weight: 600 });
    if (title.subtitle?.text) this.write(this.fitting(read(title.subtitle.text), this.width - 8, SMALL), 0, 32, { size: SMALL });
    return 48;
  }
  legend() {
    const places = [];
    let [x, row] = [0, 0];
    for (const trace of this.entries) {
      const words = this.fitting(read(trace.name), this.width - 40), wide = 34 + this.measure(words) + 14;
      if (x && x + wide > this.width) [x, row] = [0, row + 1];
      places.push([trace, words, x, row]);
      x += wide;
    }
    const rows = places.length ? row + 1 : 0;
    for (const [trace, words, left, line] of places) {
      const middle = this.height - (rows - line) * LINE + LINE / 2, group = make("g", { class: "entry" });
      if (trace.type === "bar") group.append(make("rect", { x: left + 6, y: middle - 5, width: 20, height: 10, ...this.fill(trace, 0) }));
      else this.sample(trace, group, left, middle);
      group.append(make("text", { x: left + 32, y: middle + 4, "font-size": MEDIUM }, words));
      this.svg.append(group);
    }
    return rows;
  }
  sample(trace, group, left, middle) {
    if (this.lined(trace)) group.append(make("path", { d: `M${left} ${middle}h28`, ...this.stroke(trace) }));
    if (this.pointed(trace)) {
      const mark = make("g", { transform: `translate(${left + 14} ${middle})` });
      mark.append(point(trace.marker?.symbol, Math.min(trace.marker?.size ?? 6, 10), this.shade(trace)));
      group.append(mark);
    }
  }
  lined(trace) {
    return (trace.mode ?? "lines").includes("lines");
  }
  pointed(trace) {
    return (trace.mode ?? "").includes("markers");
  }
  shade(trace) {
    return this.colour(typeof trace.marker?.color === "string" ? trace.marker.color : trace.line?.color);
  }
  stroke(trace) {
    return { fill: "none", stroke: this.colour(trace.line?.color ?? trace.marker?.color), "stroke-width": trace.line?.width ?? 2, "stroke-dasharray": DASHES[trace.line?.dash] };
  }
  fill(trace, place) {
    const colour = this.colour(at(trace.marker?.color, place)), shape = at(trace.marker?.pattern?.shape, place);
    const line = at(trace.marker?.line?.color, place);
    const edge = line ? { stroke: this.colour(line), "stroke-width": trace.marker.line.width ?? 1 } : {};
    if (!shape) return { fill: colour, "fill-opacity": trace.marker?.opacity, ...edge };
    const name = `pattern-${shape === "/" ? "lines" : "dots"}-${colour.replace(/\W/g, "")}`;
    if (![...this.patterns.children].some((one) => one.id === name)) {
      const pattern = make("pattern", { id: name, width: 6, height: 6, patternUnits: "userSpaceOnUse", patternTransform: "rotate(45)" });
      pattern.append(make("rect", { width: 6, height: 6, fill: colour, "fill-opacity": 0.3 }));
      pattern.append(shape === "/" ? make("rect", { width: 2.4, height: 6, fill: colour }) : make("circle", { cx: 3, cy: 3, r: 1.5, fill: colour }));
      this.patterns.append(pattern);
    }
    return { fill: `url(#${name})`, stroke: colour, "stroke-width": 1 };
  }

  panel({ ids, x, y, up }) {
    const [low, high] = y.settings.domain ?? [0, 1], tall = this.bottom - this.top;
    const box = { left: this.left, right: this.right, top: this.bottom - high * tall, bottom: this.bottom - low * tall };
    const across = (place) => box.left + x.shareOf(place) * (box.right - box.left), upwards = (place) => box.bottom - y.shareOf(place) * (box.bottom - box.top);
    Object.assign(this.panels.find((one) => one.ids === ids), { box, across, upwards });
    this.grid(x, y, up, box, across, upwards);
    const shapes = (this.layout.shapes ?? []).filter((shape) => (shape.xref ?? "x").split(" ")[0] === ids[0] && (shape.yref ?? "y").split(" ")[0] === ids[1]);
    shapes.forEach((shape) => this.shape(shape, x, y, box, across, upwards));
    const own = this.traces.filter((trace) => (trace.xaxis ?? "x") === ids[0] && (trace.yaxis ?? "y") === ids[1]);
    for (const trace of own) {
      if (trace.type === "bar") this.bars(trace, x, y, across, upwards);
      else if (trace.type === "heatmap") this.heat(trace, box);
      else this.scatter(trace, x, y, across, upwards);
    }
  }
  grid(x, y, up, box, across, upwards) {
    const rule = (d, strong) => this.svg.append(make("path", { d, stroke: strong ? this.ink : this.faint, "stroke-width": 1, "stroke-opacity": strong ? 0.5 : 1 }));
    const ticks = x.ticks(box.right - box.left, 44), last = x.settings.showticklabels !== false;
    for (const [place, words] of up) {
      if (y.settings.showgrid !== false && y.kind !== "category") rule(`M${box.left} ${upwards(place)}H${box.right}`);
      const bold = /^<b>/.test(y.settings.ticktext?.[y.settings.tickvals?.indexOf(place)] ?? "") ? 700 : undefined;
      this.write(this.fitting(words, this.labels, SMALL), box.left - 6, upwards(place) + 4, { size: SMALL, anchor: "end", weight: bold });
    }
    let free = -Infinity;
    for (const [place, words] of ticks) {
      const middle = across(place), half = this.measure(words, SMALL) / 2;
      if (x.settings.showgrid !== false && x.kind !== "category") rule(`M${middle} ${box.top}V${box.bottom}`);
      if (last && middle - half > free) {
        this.write(words, middle, box.bottom + 15, { size: SMALL, anchor: "middle" });
        free = middle + half + 4;
      }
    }
    const zero = (axis) => axis.kind === "linear" && axis.settings.zeroline !== false && !(axis.settings.ticktext && axis.settings.showgrid === false) && axis.shareOf(0) >= 0 && axis.shareOf(0) <= 1;
    if (zero(x)) rule(`M${across(0)} ${box.top}V${box.bottom}`, true);
    if (zero(y)) rule(`M${box.left} ${upwards(0)}H${box.right}`, true);
    if (x.settings.title?.text) this.write(this.fitting(read(x.settings.title.text), this.width), (box.left + box.right) / 2, this.bottom + LINE + 14, { anchor: "middle" });
    if (y.settings.title?.text) this.write(this.fitting(read(y.settings.title.text), Math.max(box.bottom - box.top, 60)), 12, (box.top + box.bottom) / 2, { anchor: "middle", turned: true });
  }
  spot(value, reference = "", axis, way, ends) {
    return reference.endsWith(" domain") || reference === "paper" ? ends[0] + value * (ends[1] - ends[0]) : way(axis.place(value));
  }
  shape(shape, x, y, box, across, upwards) {
    const left = this.spot(shape.x0, shape.xref, x, across, [box.left, box.right]), right = this.spot(shape.x1, shape.xref, x, across, [box.left, box.right]);
    const low = this.spot(shape.y0, shape.yref, y, upwards, [box.bottom, box.top]), high = this.spot(shape.y1, shape.yref, y, upwards, [box.bottom, box.top]);
    if (shape.type === "rect") {
      this.svg.append(make("rect", { x: Math.min(left, right), y: Math.min(low, high), width: Math.abs(right - left), height: Math.abs(high - low), fill: shape.fillcolor }));
    } else {
      const line = shape.line ?? {};
      this.svg.append(make("path", { d: `M${left} ${low}L${right} ${high}`, stroke: this.colour(line.color), "stroke-width": line.width ?? 2, "stroke-dasharray": DASHES[line.dash] }));
    }
  }
  note(note) {
    const { box, across, upwards, x, y } = this.panels.find((panel) => note.xref?.split(" ")[0] === panel.ids[0]) ?? this.panels[0];
    const way = (place) => across(place); // of a log axis, notes name the power
    const left = note.xref?.endsWith(" domain") ? this.spot(note.x, note.xref, x, way, [box.left, box.right]) : across(x.kind === "log" ? note.x : x.place(note.x));
    const top = this.spot(note.y, note.yref ?? "paper", y, upwards, [box.bottom, box.top]);
    this.write(read(note.text), left + (note.xshift ?? 3), top + 11, { size: note.font?.size ?? MEDIUM });
  }

  mark(node, trace, place, words) {
    this.svg.append(node);
    const chosen = { customdata: at(trace.customdata, place) ?? [], point_index: place, x: at(trace.x, place), y: at(trace.y, place) };
    this.marks.push({ node, words: lines(words) });
    if (this.select && trace.type !== "heatmap") {
      const choose = () => this.select(chosen);
      for (const [key, value] of Object.entries({ tabindex: 0, role: "button", "aria-label": lines(words).join(", "), class: "choice" })) node.setAttribute(key, value);
      node.addEventListener("click", choose);
      node.addEventListener("keydown", (event) => (event.key === "Enter" || event.key === " ") && (event.preventDefault(), choose()));
    }
  }
  bars(trace, x, y, across, upwards) {
    const flat = trace.orientation === "h", [along, value] = flat ? [y, x] : [x, y];
    const [sideways, lengthwise] = flat ? [upwards, across] : [across, upwards];
    (trace[flat ? "y" : "x"] ?? []).forEach((where, place) => {
      const amount = at(trace[flat ? "x" : "y"], place), base = at(trace.base, place) ?? 0;
      if (amount === null) return;
      const middle = along.place(where), half = (at(trace.width, place) ?? BAND) / 2;
      const start = value.kind === "log" ? value.low : base, end = value.place(base + amount);
      if (!Number.isFinite(end)) return;
      const [a, b] = [lengthwise(start), lengthwise(end)], [c, d] = [sideways(middle - half), sideways(middle + half)];
      const [thin, wide] = [Math.min(c, d), Math.abs(d - c)], [first, long] = [Math.min(a, b), Math.abs(b - a)];
      const box = flat ? { x: first, y: thin, width: long, height: wide } : { x: thin, y: first, width: wide, height: long };
      this.mark(make("rect", { ...box, ...this.fill(trace, place) }), trace, place, said(trace, place));
      const words = read(at(trace.text, place) ?? "");
      if (!words) return;
      const size = trace.textfont?.size ?? SMALL;
      if (flat) this.write(words, amount < 0 ? first - 4 : first + long + 4, thin + wide / 2 + 4, { size, anchor: amount < 0 ? "end" : "start" });
      else this.write(words, thin + wide / 2, amount < 0 ? first + long + 12 : first - 4, { size, anchor: "middle" });
    });
  }
  scatter(trace, x, y, across, upwards) {
    const spots = (trace.x ?? []).map((value, place) => [across(x.place(value)), upwards(y.place(at(trace.y, place)))]);
    const there = ([left, top]) => Number.isFinite(left) && Number.isFinite(top);
    if (this.lined(trace)) this.svg.append(make("path", { d: path(spots.filter(there), trace.line?.shape), "stroke-linejoin": "round", ...this.stroke(trace) }));
    spots.forEach((spot, place) => {
      if (!there(spot)) return;
      const node = make("g", { transform: `translate(${spot[0]} ${spot[1]})` });
      for (const [error, axis, way, flat] of [[trace.error_x, x, across, true], [trace.error_y, y, upwards, false]]) {
        if (!error) continue;
        const value = at(flat ? trace.x : trace.y, place), ends = [value - (error.arrayminus ?? error.array)[place], value + error.array[place]];
        const [a, b] = ends.map((end) => way(axis.place(end)) - spot[flat ? 0 : 1]);
        node.append(make("path", { d: flat ? `M${a} 0H${b}M${a} -3v6M${b} -3v6` : `M0 ${a}V${b}M-3 ${a}h6M-3 ${b}h6`, stroke: this.shade(trace), "stroke-width": error.thickness ?? 1.2 }));
      }
      const size = at(trace.marker?.size, place) ?? 6;
      if (this.pointed(trace)) node.append(point(at(trace.marker?.symbol, place), size, this.shade(trace)));
      node.append(make("circle", { r: Math.max(size, 7), fill: "transparent" }));
      this.mark(node, trace, place, said(trace, place));
    });
  }
  heat(trace, box) {
    const rows = trace.z.length, columns = trace.z[0]?.length ?? 0, values = trace.z.flat();
    const [low, high] = [Math.min(...values), Math.max(...values)];
    const picture = document.createElement("canvas");
    [picture.width, picture.height] = [columns, rows];
    const brush = picture.getContext("2d"), scale = trace.colorscale.map(([share, colour]) => [share, this.colour(colour)]);
    const strip = Object.assign(document.createElement("canvas"), { width: 256, height: 1 }).getContext("2d", { willReadFrequently: true });
    const ramp = strip.createLinearGradient(0, 0, 256, 0);
    for (const [share, colour] of scale) ramp.addColorStop(share, colour);
    strip.fillStyle = ramp;
    strip.fillRect(0, 0, 256, 1);
    const shades = strip.getImageData(0, 0, 256, 1).data, pixels = brush.createImageData(columns, rows);
    values.forEach((value, place) => {
      const shade = high > low ? Math.round((255 * (value - low)) / (high - low)) : 0;
      pixels.data.set(shades.slice(4 * shade, 4 * shade + 4), 4 * place);
    });
    brush.putImageData(pixels, 0, 0);
    const area = { x: box.left, y: box.top, width: box.right - box.left, height: box.bottom - box.top };
    const image = make("image", { ...area, href: picture.toDataURL(), preserveAspectRatio: "none", style: "image-rendering: pixelated" });
    this.svg.append(image);
    const cell = (event) => {
      const seen = image.getBoundingClientRect(), column = Math.floor(((event.clientX - seen.left) / seen.width) * columns), row = Math.floor(((event.clientY - seen.top) / seen.height) * rows);
      return row < 0 || column < 0 || row >= rows || column >= columns ? [] : lines(filled(trace, { x: trace.x[column], y: trace.y[row], z: trace.z[row][column] }));
    };
    this.marks.push({ node: image, find: cell });
    this.scaleOf(trace, scale, [low, high], area);
  }
  scaleOf(trace, scale, ends, area) {
    const ramp = make("linearGradient", { id: "ramp", x1: 0, y1: 1, x2: 0, y2: 0 }), left = area.x + area.width + 12;
    for (const [share, colour] of scale) ramp.append(make("stop", { offset: share, "stop-color": colour }));
    this.patterns.append(ramp);
    this.svg.append(make("rect", { x: left, y: area.y + 16, width: 12, height: Math.max(area.height - 16, 0), fill: "url(#ramp)" }));
    this.write(read(trace.colorbar?.title?.text), left, area.y + 8, { size: SMALL });
    const words = (value) => formatted(value, trace.colorbar?.tickformat ?? (Number.isInteger(value) ? "," : undefined));
    this.write(words(ends[1]), left + 16, area.y + 26, { size: SMALL });
    this.write(words(ends[0]), left + 16, area.y + area.height, { size: SMALL });
  }
}

const path = (spots, shape) => {
  if (shape !== "hvh") return spots.map(([x, y], place) => `${place ? "L" : "M"}${x} ${y}`).join("");
  return spots.map(([x, y], place) => (place ? `H${(x + spots[place - 1][0]) / 2}V${y}${place === spots.length - 1 ? `H${x}` : ""}` : `M${x} ${y}`)).join("");
};

// Saving the picture

const save = (drawing, name, format) => {
  const { svg, width, height, ground } = drawing, copy = svg.cloneNode(true);
  copy.prepend(make("rect", { width, height, fill: ground }));
  const file = new Blob([new XMLSerializer().serializeToString(copy)], { type: "image/svg+xml" });
  const give = (blob) => {
    const link = Object.assign(document.createElement("a"), { href: URL.createObjectURL(blob), download: `${name}.${format}` });
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
  };
  if (format === "svg") return give(file);
  const picture = new Image();
  picture.onload = () => {
    const canvas = Object.assign(document.createElement("canvas"), { width: 2 * width, height: 2 * height });
    canvas.getContext("2d").drawImage(picture, 0, 0, 2 * width, 2 * height);
    canvas.toBlob(give);
  };
  picture.src = URL.createObjectURL(file);
};

export default function ({ data, parentElement, setTriggerValue }) {
  const place = parentElement.querySelector(".drawing"), canvas = place.querySelector(".canvas");
  const button = place.querySelector("button"), tip = place.querySelector(".tip");
  const select = data.selects ? (chosen) => setTriggerValue("point", chosen) : null;
  let drawing = null;
  const hide = () => (tip.hidden = true);
  const show = (event, words) => {
    if (!words.length) return hide();
    tip.replaceChildren(...words.map((line) => Object.assign(document.createElement("div"), { textContent: line })));
    tip.hidden = false;
    const around = place.getBoundingClientRect(), left = event.clientX - around.left + 14;
    tip.style.left = `${Math.max(0, Math.min(left, around.width - tip.offsetWidth - 4))}px`;
    tip.style.top = `${Math.max(0, event.clientY - around.top - tip.offsetHeight - 10)}px`;
  };
  const draw = () => {
    const width = Math.floor(place.clientWidth);
    if (width < 40) return;
    drawing = new Drawing(data.spec, width, data.height, place, select);
    drawing.svg.setAttribute("aria-hidden", select ? "false" : "true");
    for (const { node, words, find } of drawing.marks) {
      node.addEventListener("pointermove", (event) => show(event, find ? find(event) : words));
      node.addEventListener("pointerleave", hide);
    }
    canvas.replaceChildren(drawing.svg);
    place.dataset.drawn = "yes";
  };
  place.setAttribute("aria-label", data.alt);
  place.style.height = `${data.height}px`;
  button.setAttribute("aria-label", `Save picture as ${data.format.toUpperCase()}`);
  button.onclick = () => drawing && save(drawing, data.name, data.format);
  const sized = new ResizeObserver(() => Math.floor(place.clientWidth) !== drawing?.width && draw());
  sized.observe(place);
  place.ontransitionend = (event) => event.target === place && draw(); // the theme's colour of text has changed
  draw();
  return () => sized.disconnect();
}
