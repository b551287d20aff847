// What stands around the boxes: title, controls, footer.

// A button as document.rs draws those of the file.
function makeButton(id, label, width, hint) {
  const g = element('g', { id, class: 'button', role: 'button', tabindex: 0 });
  const rect = { width, height: 24, rx: 4, fill: '#fff', stroke: '#d1d9e0' };
  g.append(element('title', {}, hint), element('rect', rect));
  g.append(element('text', { x: width / 2, y: 16, 'text-anchor': 'middle', 'font-size': 11 }, label));
  return g;
}

const button = {
  unzoom: byId('unzoom'),
  ignorecase: byId('ignorecase'),
  another: makeButton('another', '+', 24, 'Keep this search, and start another (Ctrl-Enter)'),
  help: makeButton('help', '?', 28, 'What can be done, and the keys for it (?)'),
  // Of two profiles, where there is room.
  sides: makeButton('sides', '', 96, 'Other widths (d)'),
  by: makeButton('by', '', 96, 'Colours by the other change (t)'),
};
const chips = element('g', { id: 'searches' });
const inputBox = element('foreignObject', { y: 9, width: 190, height: 26 });
const input = document.createElementNS(HTML, 'input');
const INPUT = {
  class: 'flame-input',
  type: 'text',
  spellcheck: 'false',
  autocomplete: 'off',
  autocapitalize: 'off',
  placeholder: 'Search (regex)',
  'aria-label': 'Search functions by regular expression',
};

function addControls() {
  for (const key in INPUT) input.setAttribute(key, INPUT[key]);
  inputBox.append(input);
  byId('search').append(inputBox);
  byId('head').append(button.another, button.help, chips);
  if (diff) byId('head').append(button.sides, button.by);
  show(byId('search'), true);
  show(button.ignorecase, true);
  details.setAttribute('role', 'status');
  matched.setAttribute('role', 'status');
}

function placeHeader() {
  const right = width - data.margin, resets = view.up >= 0 || filtered();
  const inputWidth = Math.max(90, Math.min(190, width - 340));
  let left = right - 28;
  const put = (what, size) => {
    left -= 6 + size;
    what.setAttribute('transform', `translate(${left} 9)`);
  };
  button.help.setAttribute('transform', `translate(${left} 9)`);
  put(button.ignorecase, 28);
  left -= 6 + inputWidth;
  inputBox.setAttribute('x', left);
  inputBox.setAttribute('width', inputWidth);
  if (diff) {
    for (const [key, label] of [['by', `Colour: ${state.by}`], ['sides', `Widths: ${state.sides}`]]) {
      button[key].children[2].textContent = label;
      show(button[key], width >= 700);
      if (width >= 700) put(button[key], 96);
    }
  }
  show(button.another, input.value !== '');
  if (input.value) put(button.another, 24);
  show(button.unzoom, resets);
  if (resets) put(button.unzoom, 88);
  matched.setAttribute('x', right);
  const milliEm = pixels => Math.floor(Math.max(pixels, 0) * 1000);
  const titleRoom = left - 2 * data.margin;
  const titleEm = milliEm(titleRoom) / data.titleSize * 100 / data.boldPercent;
  byId('title').textContent = titleRoom < 30 ? '' : cutEnd(data.title, titleEm);
  const taken = placeChips(right);
  const room = right - data.margin - (taken ? taken + 20 : 0);
  byId('subtitle').textContent = room < 30 ? '' : cutEnd(data.subtitle, milliEm(room) / data.uiSize);
}

// The searches that are kept, left of the matched share; returns what both take.
function placeChips(right) {
  let taken = textWidth(matched.textContent) * data.uiSize / 1000;
  for (const chip of chips.children) {
    const size = +chip.children[1].getAttribute('width');
    taken += size + (taken ? 10 : 0);
    chip.setAttribute('transform', `translate(${right - taken} 37)`);
  }
  return taken;
}

function placeFooter() {
  const room = Math.floor((width - 2 * data.margin) * 1000 / data.footerSize);
  const lines = data.footer.flatMap(line => wrap(line, room));
  placeLegend();
  byId('footer').replaceChildren(...lines.map((line, k) =>
    element('text', { x: data.margin, y: data.footerY + k * data.footerLine }, line)));
  resizeTo(rows);
}

// The entries of the legend, in as many lines as it takes.
let legendExtra = 0;
function placeLegend() {
  const entries = byId('legend').children, right = width - data.margin;
  let left = data.margin, extra = 0;
  for (let k = 0; k + 1 < entries.length; k += 2) {
    const mark = entries[k], text = entries[k + 1];
    const size = 16 + Math.floor(textWidth(text.textContent) * data.footerSize / 1000);
    if (left + size > right && left > data.margin) {
      left = data.margin;
      extra += data.footerLine;
    }
    mark.setAttribute('x', left);
    text.setAttribute('x', left + 16);
    for (const part of [mark, text]) {
      if (extra) part.setAttribute('transform', `translate(0 ${extra})`); else part.removeAttribute('transform');
    }
    left += size + 18;
  }
  legendExtra = extra;
  if (extra) byId('footer').setAttribute('transform', `translate(0 ${extra})`);
  else byId('footer').removeAttribute('transform');
}

// Reading the window's position makes the browser lay out the page: once a frame, not more.
let settling = 0, shift = 0;
function settleSoon(by) {
  shift += by;
  if (!settling) settling = requestAnimationFrame(settle);
}

function settle() {
  settling = 0;
  if (shift && standalone) window.scrollBy(0, shift);
  shift = 0;
  pin();
}

// Keeps header and details in sight while a graph taller than the window scrolls.
function pin() {
  let head = 0, status = bottom;
  if (standalone) {
    head = Math.max(0, Math.min(window.scrollY, bottom - data.top));
    status = Math.max(data.top, Math.min(bottom, window.scrollY + window.innerHeight - data.status));
  }
  const move = (id, y, home) => {
    byId(id).setAttribute('transform', `translate(0 ${y})`);
    byId(id).setAttribute('class', y === home ? '' : 'pinned');
  };
  move('head', head, 0);
  move('status', status, bottom);
}
