
"use strict";
// Zooms all lanes into one time. What is shown goes from `from` to `until`, in parts of the whole.
(() => {
  const svg = document.documentElement.tagName === "svg" ? document.documentElement
    : document.currentScript.closest("svg");
  const NS = "http://www.w3.org/2000/svg";
  const duration = Number(svg.dataset.duration);
  const left = Number(svg.dataset.left);
  const width = Number(svg.dataset.width);
  const axis = svg.querySelector("#axis");
  const shown = svg.querySelector("#shown");
  const hint = shown.textContent;
  const LEAST_TEXT = 22;
  const PADDING = 3;
  // A hundredth of a pixel of the whole picture, to which edges are rounded.
  const NARROWEST = 1 / (width * 100);
  let from = 0;
  let until = 1;

  const lanes = [...svg.querySelectorAll(".lane")].map((lane) => {
    const boxes = lane.querySelector(".boxes");
    const [, , inner, height] = boxes.getAttribute("viewBox").split(" ").map(Number);
    const frames = [...boxes.querySelectorAll("rect:not(.ran)")].map((rect) => {
      const title = rect.querySelector("title");
      const [name, took] = title ? title.textContent.split("\n") : ["", ""];
      const x = Number(rect.getAttribute("x")) / inner;
      return { rect, name, took, x, end: x + Number(rect.getAttribute("width")) / inner,
        y: Number(rect.getAttribute("y")) };
    });
    const name = lane.querySelector(".name");
    const rows = { few: Number(name.dataset.rows), all: Number(name.dataset.all) };
    return { lane, boxes, inner, height, frames, name, rows, isWhole: false,
      texts: lane.querySelector(".texts"), top: Number(boxes.getAttribute("y")) };
  });

  const measure = document.createElementNS(NS, "text");
  measure.setAttribute("visibility", "hidden");
  svg.append(measure);
  const widths = new Map();
  const widthOf = (letter) => {
    if (!widths.has(letter)) {
      measure.textContent = letter === " " ? "\u00a0" : letter;
      widths.set(letter, measure.getComputedTextLength());
    }
    return widths.get(letter);
  };

  // As much of a name as has room.
  const fitted = (name, room) => {
    let used = 0;
    let cut = 0;
    const dots = widthOf("\u2026");
    for (const letter of name) {
      used += widthOf(letter);
      if (used + dots <= room) cut += letter.length;
      if (used > room) return cut < 2 ? "" : name.slice(0, cut) + "\u2026";
    }
    return name;
  };

  const length = (nanos) => {
    const [unit, one] = nanos < 1e4 ? ["ns", 1] : nanos < 1e7 ? ["\u00b5s", 1e3]
      : nanos < 1e10 ? ["ms", 1e6] : ["s", 1e9];
    const amount = nanos / one;
    return `${amount.toFixed(amount < 100 && one > 1 ? 1 : 0)} ${unit}`;
  };

  const moment = (nanos, step) => {
    const digits = Math.max(0, Math.min(9, 9 - Math.floor(Math.log10(step))));
    return `${(nanos / 1e9).toFixed(digits)} s`;
  };

  const drawAxis = () => {
    const [start, end] = [from * duration, until * duration];
    const least = (end - start) * 90 / width;
    const power = 10 ** Math.floor(Math.log10(Math.max(least, 1)));
    const step = power * [1, 2, 5, 10].find((times) => power * times >= least);
    const lines = [...axis.querySelectorAll("path")];
    const [, top, bottom] = /M[\d.]+ (\d+)V(\d+)/.exec(lines[0].getAttribute("d"));
    const parts = [];
    for (let at = Math.ceil(start / step) * step; at <= end; at += step) {
      const x = left + (at - start) / (end - start) * width;
      const line = document.createElementNS(NS, "path");
      line.setAttribute("d", `M${x.toFixed(1)} ${top}V${bottom}`);
      const text = document.createElementNS(NS, "text");
      text.setAttribute("x", (x + 3).toFixed(1));
      text.setAttribute("y", Number(top) - 4);
      text.textContent = moment(at, step);
      parts.push(line, text);
    }
    if (parts.length) axis.replaceChildren(...parts);
  };

  const drawTexts = (lane) => {
    const scale = width / (until - from);
    const texts = [];
    for (const { name, x, end, y } of lane.frames) {
      const [start, stop] = [Math.max(x, from), Math.min(end, until)];
      const room = (stop - start) * scale;
      if (y >= lane.height || !name || room < LEAST_TEXT) continue;
      const label = fitted(name, room - 2 * PADDING);
      if (!label) continue;
      const text = document.createElementNS(NS, "text");
      text.setAttribute("x", (left + (start - from) * scale + PADDING).toFixed(1));
      text.setAttribute("y", lane.top + y + 12);
      text.textContent = label;
      texts.push(text);
    }
    lane.texts.replaceChildren(...texts);
  };

  const ROW = 16;
  const BELOW = 10;
  // Puts the lanes below each other, each as high as its rows.
  const stack = () => {
    const first = /translate\(0 (\d+)\)/.exec(lanes[0].lane.getAttribute("transform"));
    let y = Number(first[1]);
    for (const lane of lanes) {
      const { few, all } = lane.rows;
      lane.height = lane.base + (lane.isWhole ? all : few) * ROW;
      lane.boxes.setAttribute("height", lane.height);
      lane.lane.setAttribute("transform", `translate(0 ${y})`);
      y += lane.top + lane.height + BELOW;
    }
    const notes = svg.querySelector("#notes");
    notes.setAttribute("transform", `translate(0 ${y})`);
    const height = y + 24 + ROW * notes.children.length;
    svg.setAttribute("height", height);
    svg.setAttribute("viewBox", `0 0 ${svg.viewBox.baseVal.width} ${height}`);
    for (const line of axis.querySelectorAll("path")) {
      line.setAttribute("d", line.getAttribute("d").replace(/V\d+/, `V${y}`));
    }
    draw();
  };
  for (const lane of lanes) {
    lane.base = lane.height - lane.rows.few * ROW;
    if (lane.rows.few >= lane.rows.all) continue;
    const name = lane.name;
    name.classList.add("folds");
    name.setAttribute("tabindex", 0);
    name.setAttribute("role", "button");
    name.setAttribute("aria-expanded", false);
    const turn = () => {
      lane.isWhole = !lane.isWhole;
      name.setAttribute("aria-expanded", lane.isWhole);
      stack();
    };
    name.addEventListener("click", turn);
    name.addEventListener("keydown", (event) => {
      if (event.key === "Enter" || event.key === " ") {
        event.preventDefault();
        turn();
      }
    });
  }

  let pending = false;
  const draw = () => {
    pending = false;
    for (const lane of lanes) {
      lane.boxes.setAttribute("viewBox", `${from * lane.inner} 0 ${(until - from) * lane.inner} ${lane.height}`);
      drawTexts(lane);
    }
    drawAxis();
  };
  const say = (text) => {
    shown.textContent = text || (until - from < 1
      ? `${length((until - from) * duration)} from ${moment(from * duration, 1e6)} on; Esc for the whole`
      : hint);
  };
  const show = (start, end) => {
    const span = Math.min(1, Math.max(end - start, NARROWEST));
    from = Math.min(Math.max(0, start), 1 - span);
    until = from + span;
    say();
    if (!pending) {
      pending = true;
      requestAnimationFrame(draw);
    }
  };

  const frameOf = (event) => {
    const rect = event.target.closest && event.target.closest(".boxes rect");
    for (const lane of rect ? lanes : []) {
      const frame = lane.frames.find((one) => one.rect === rect);
      if (frame) return { frame, lane };
    }
    return null;
  };
  const partOf = (event) => {
    const place = svg.getBoundingClientRect();
    const scale = place.width / svg.viewBox.baseVal.width;
    return ((event.clientX - place.left) / scale - left) / width;
  };

  let grip = null;
  svg.addEventListener("pointerdown", (event) => {
    if (event.button === 0) grip = { at: partOf(event), from, until, moved: false };
  });
  svg.addEventListener("pointermove", (event) => {
    if (grip && event.buttons & 1) {
      const by = partOf(event) - grip.at;
      grip.moved ||= Math.abs(by) * width > 4;
      if (grip.moved) {
        svg.classList.add("moving");
        show(grip.from - by * (grip.until - grip.from), grip.until - by * (grip.until - grip.from));
      }
      return;
    }
    const found = frameOf(event);
    say(found && found.frame.name
      ? `${found.frame.name} \u2014 ${found.frame.took} from ${moment(found.frame.x * duration, 1e5)} on, ${found.lane.name.firstChild.textContent}`
      : "");
  });
  svg.addEventListener("pointerup", (event) => {
    svg.classList.remove("moving");
    const moved = grip && grip.moved;
    grip = null;
    const found = moved ? null : frameOf(event);
    if (!found) return;
    const { x, end } = found.frame;
    // A second click on what fills the window leads back.
    if (x >= from - NARROWEST && Math.abs(end - until) < NARROWEST * 2 && Math.abs(x - from) < NARROWEST * 2) show(0, 1);
    else show(x, end);
  });
  svg.addEventListener("wheel", (event) => {
    // Lanes are scrolled with Shift, or by the bar.
    if (event.shiftKey) return;
    event.preventDefault();
    const at = from + Math.min(1, Math.max(0, partOf(event))) * (until - from);
    const times = Math.exp(Math.max(-1, Math.min(1, event.deltaY / 300)));
    show(at - (at - from) * times, at + (until - at) * times);
  }, { passive: false });
  // What a search finds keeps its colours; how long that took is added up once where calls are nested.
  const matched = svg.querySelector("#matched");
  const box = document.createElementNS(NS, "foreignObject");
  for (const [name, value] of [["x", left + width - 200], ["y", 10], ["width", 200], ["height", 26]]) {
    box.setAttribute(name, value);
  }
  const input = document.createElementNS("http://www.w3.org/1999/xhtml", "input");
  input.setAttribute("type", "search");
  input.setAttribute("placeholder", "Search (regex)");
  input.setAttribute("aria-label", "Search (regex)");
  box.append(input);
  svg.append(box);
  const pattern = (text) => {
    try {
      return new RegExp(text, "i");
    } catch {
      return new RegExp(text.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"), "i");
    }
  };
  input.addEventListener("input", () => {
    const wanted = input.value ? pattern(input.value) : null;
    let [count, time] = [0, 0];
    for (const lane of lanes) {
      const found = lane.frames.filter((frame) => wanted && frame.name && wanted.test(frame.name));
      for (const { rect } of lane.frames) rect.classList.remove("found");
      for (const { rect } of found) rect.classList.add("found");
      count += found.length;
      let end = 0;
      for (const frame of found.sort((one, other) => one.x - other.x)) {
        time += Math.max(0, frame.end - Math.max(end, frame.x));
        end = Math.max(end, frame.end);
      }
    }
    svg.classList.toggle("searched", wanted !== null);
    matched.textContent = !wanted ? "" : count ? `${count} boxes, ${length(time * duration)}` : "nothing found";
  });
  addEventListener("keydown", (event) => {
    if (event.target === input) {
      if (event.key === "Escape") {
        input.value = "";
        input.dispatchEvent(new Event("input"));
        input.blur();
      }
      return;
    }
    if (event.key === "/" || event.key === "f" && event.ctrlKey) {
      event.preventDefault();
      input.focus();
      return;
    }
    const span = until - from;
    const keys = {
      Escape: () => show(0, 1),
      ArrowLeft: () => show(from - span / 4, until - span / 4),
      ArrowRight: () => show(from + span / 4, until + span / 4),
      "+": () => show(from + span / 4, until - span / 4),
      "-": () => show(from - span / 2, until + span / 2),
    };
    if (keys[event.key] && !event.ctrlKey && !event.metaKey) {
      event.preventDefault();
      keys[event.key]();
    }
  });
})();
