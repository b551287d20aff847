// Title, search field and buttons: in one row where there is room, else in two, on phones in more.

const HIGH = coarse ? 36 : 24, BUTTON_SIZE = coarse ? 13 : 11, SPACE = 6, FIRST_ROW = 9, FIELD = 190;
const phone = () => width < 600;

// A button as document.rs draws those of the file.
function makeButton(id, hint) {
  const g = element('g', { id, class: 'button', role: 'button', tabindex: 0 });
  g.append(element('title', {}, hint), element('rect', { rx: 4, fill: '#fff', stroke: '#d1d9e0' }));
  g.append(element('text', { 'text-anchor': 'middle' }));
  return g;
}

const button = {
  unzoom: byId('unzoom'),
  undo: makeButton('undo', 'Take the last step back (u)'),
  flip: makeButton('flip', 'Turn the graph over (i)'),
  order: makeButton('order', 'Order of what stands beside each other (o)'),
  // Of two profiles.
  sides: makeButton('sides', 'What is as wide as what (d)'),
  by: makeButton('by', 'Colours by the change of self or of total weight (t)'),
  another: makeButton('another', 'Keep this search, and start another (Ctrl-Enter)'),
  previous: makeButton('previous', 'The match before (N)'),
  next: makeButton('next', 'The next match (n)'),
  ignorecase: byId('ignorecase'),
  help: makeButton('help', 'What can be done, and the keys for it (?)'),
};
// From the left. What turns two profiles over and orders them is in the list of keys.
const ACTS = diff ? ['unzoom', 'undo', 'sides', 'by', 'another'] : ['unzoom', 'undo', 'flip', 'order', 'another'];
const FINDS = ['previous', 'next', 'ignorecase', 'help'];

const inputBox = element('foreignObject', { height: HIGH + 2 });
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
  byId('head').append(...ACTS.slice(0, -1).map(key => button[key]), byId('search'),
    ...['another', ...FINDS].map(key => button[key]));
  show(byId('search'), true);
  for (const [key, text] of [['unzoom', 'Reset Zoom'], ['undo', 'Undo'], ['order', 'Order …'],
    ['another', 'Keep search'], ['previous', '‹'], ['next', '›'], ['ignorecase', 'Ignore case'], ['help', '?']]) {
    write(button[key], text);
  }
  show(button.ignorecase, true);
  byId('status').append(chips, standing, matched);
  details.setAttribute('role', 'status');
  matched.setAttribute('role', 'status');
}

// Writes what stands on a button, which is as wide as that takes.
function write(button, text) {
  const [, rect, label] = button.children;
  const size = Math.ceil(textWidth(text) * BUTTON_SIZE / 1000) + (coarse ? 24 : 18);
  label.textContent = text;
  rect.setAttribute('width', size);
  rect.setAttribute('height', HIGH);
  label.setAttribute('x', size / 2);
  label.setAttribute('y', HIGH / 2 + 4);
  label.setAttribute('font-size', BUTTON_SIZE);
}

// Puts a button, or the field, somewhere; returns where what stands left or right of it starts.
const sizeOf = (what, field) => what === input ? field : +what.children[1].getAttribute('width');
function put(what, left, y, field) {
  if (what === input) {
    inputBox.setAttribute('x', left);
    inputBox.setAttribute('y', y);
    inputBox.setAttribute('width', field);
  } else what.setAttribute('transform', `translate(${left} ${y})`);
}

// The left edge of a row that ends at the right.
function putRow(row, y, field) {
  let left = width - data.margin;
  for (const what of row.slice().reverse()) {
    left -= sizeOf(what, field);
    put(what, left, y, field);
    left -= SPACE;
  }
  return left;
}

function placeHeader() {
  const needless = {
    unzoom: view.up < 0 && !filtered() && !state.around,
    flip: isAround(),
    undo: !canUndo(),
    another: !input.value || state.pinned.length >= MOST,
  };
  if (diff) {
    write(button.sides, `Show: ${SHOWN[state.sides][0]}`);
    write(button.by, `Colour: ${state.by} change`);
  } else write(button.flip, icicle ? 'Flame graph' : 'Icicle graph');
  for (const key of ACTS) show(button[key], !needless[key]);
  const acts = ACTS.filter(key => !needless[key]).map(key => button[key]);
  const lowest = placeRows(acts, FINDS.map(key => button[key])) + HIGH;
  setHead(Math.max(data.top, lowest + 8));
}

// Puts the controls where there is room; returns where the last row starts.
function placeRows(acts, finds) {
  const room = width - 2 * data.margin, titleY = FIRST_ROW + HIGH / 2 + 7, second = FIRST_ROW + HIGH + SPACE;
  const sizes = row => row.reduce((sum, what) => sum + sizeOf(what, FIELD) + SPACE, 0);
  const natural = textWidth(data.title) * data.titleSize * data.boldPercent / 100000 + SPACE;
  // What is not there yet has its room, so that nothing jumps when it comes.
  const search = [input, ...finds], all = sizes(search) + sizes(ACTS.map(key => button[key]));
  if (all + Math.min(natural, 220) <= room) {
    placeTitle(putRow([...acts, ...search], FIRST_ROW, FIELD), titleY, room);
    return FIRST_ROW;
  }
  if (!phone()) {
    const left = putRow(search, FIRST_ROW, FIELD);
    placeTitle(left, titleY, putRow(acts, second) - 2 * data.margin);
    return second;
  }
  placeTitle(putRow([button.help], FIRST_ROW), titleY, room);
  const y = second + (data.subtitle ? 16 : 0), [previous, next, ignore] = finds;
  const field = room - sizes([previous, next, ignore]);
  putRow([input, previous, next, ignore], y, field);
  let left = data.margin, row = y + HIGH + SPACE;
  for (const act of acts) {
    if (left > data.margin && left + sizeOf(act) > width - data.margin) {
      left = data.margin;
      row += HIGH + SPACE;
    }
    put(act, left, row);
    left += sizeOf(act) + SPACE;
  }
  return acts.length ? row : y;
}

// As much of title and subtitle as there is room for.
function placeTitle(left, y, room) {
  const milliEm = pixels => Math.floor(Math.max(pixels, 0) * 1000), title = left - data.margin;
  const titleEm = milliEm(title) / data.titleSize * 100 / data.boldPercent;
  byId('title').textContent = title < 30 ? '' : cutEnd(data.title, titleEm);
  byId('title').setAttribute('y', y);
  byId('subtitle').textContent = room < 30 ? '' : cutEnd(data.subtitle, milliEm(room) / data.uiSize);
  byId('subtitle').setAttribute('y', y + 20);
}
