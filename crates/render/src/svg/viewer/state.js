// What is shown, as one value that goes into the address and comes back from it.

const INITIAL = {
  // Path of the run that fills the width.
  zoom: '',
  // The search in the box, and those that are kept.
  pattern: '',
  pinned: [],
  ignoreCase: false,
  order: 'file',
  icicle: Boolean(data.inverted),
  // Paths of runs that are left out; names that every stack must hold.
  hide: [],
  only: [],
  // The function whose callers and callees are shown.
  around: data.around || '',
  // Of two profiles: which widths are shown, and which change gives the colours.
  sides: diff ? diff.view : '',
  by: diff ? diff.by : '',
};
// What the file shows.
let state = { ...INITIAL, around: '' };
// What was shown before, for pages whose address is not ours.
const past = [];
let steps = 0, addressWorks = standalone;

const differs = (a, b, keys) => keys.some(key => JSON.stringify(a[key]) !== JSON.stringify(b[key]));

function addressOf(state) {
  const found = new URLSearchParams();
  if (state.zoom) found.append('z', state.zoom);
  if (state.pattern) found.append('s', state.pattern);
  for (const pattern of state.pinned) found.append('k', pattern);
  if (state.ignoreCase) found.append('i', '1');
  if (state.order !== INITIAL.order) found.append('o', state.order);
  if (state.icicle !== INITIAL.icicle) found.append('v', state.icicle ? 'icicle' : 'flame');
  for (const path of state.hide) found.append('h', path);
  for (const name of state.only) found.append('f', name);
  if (state.around !== INITIAL.around) found.append('a', state.around);
  if (state.sides !== INITIAL.sides) found.append('d', state.sides);
  if (state.by !== INITIAL.by) found.append('t', state.by);
  return '#' + found;
}

function stateOf(address) {
  const own = new URLSearchParams(address.hash.slice(1)), classic = new URLSearchParams(address.search);
  const order = own.get('o'), known = order === 'name' || order === 'weight';
  return {
    zoom: own.get('z') || '',
    pattern: own.get('s') || (address.hash ? '' : classic.get('s') || ''),
    pinned: own.getAll('k').slice(0, MOST),
    ignoreCase: own.get('i') === '1',
    order: known ? order : INITIAL.order,
    icicle: own.has('v') ? own.get('v') === 'icicle' : INITIAL.icicle,
    hide: own.getAll('h'),
    only: own.getAll('f'),
    around: diff ? '' : own.has('a') ? own.get('a') : INITIAL.around,
    sides: diff && SIDES.includes(own.get('d')) ? own.get('d') : INITIAL.sides,
    by: diff && ['self', 'total'].includes(own.get('t')) ? own.get('t') : INITIAL.by,
  };
}

// flamegraph.pl's addresses name a box by its corner in the picture of the file.
function classicZoom(address) {
  const query = new URLSearchParams(address.search), x = parseFloat(query.get('x')), y = parseFloat(query.get('y'));
  if (diff || address.hash || !(x >= 0 && y >= 0)) return '';
  const boxes = layout(wholeView(), unitsOf(data.width));
  const bottom = boxes.reduce((most, cell) => Math.max(most, depth[cell.node] + 1), 1);
  const found = boxes.find(cell => !cell.thin && Math.abs(cell.left / 100 - x) < 0.1
    && Math.abs(data.top + (bottom - 1 - depth[cell.node]) * data.row - y) < data.row / 2);
  return found ? pathOf(found.node) : '';
}

// Changing the address takes longer than drawing, so it waits until the picture is there; while
// somebody types, until that pauses: browsers limit how often an address may change.
let waiting = 0, pendingWrite = '';
function writeLater(how, delay) {
  clearTimeout(waiting);
  pendingWrite = pendingWrite || how;
  waiting = setTimeout(writeNow, delay);
}

// In the frame after the one that shows the step.
function writeSoon() {
  pendingWrite = pendingWrite || 'pushState';
  requestAnimationFrame(() => writeLater(pendingWrite, 0));
}

function writeNow() {
  clearTimeout(waiting);
  const how = pendingWrite;
  pendingWrite = '';
  if (!how || !addressWorks) return;
  try {
    history[how]({ flame: steps }, '', addressOf(state));
  } catch (refused) {
    // Frames made from text, and sandboxes, have no address to change.
    addressWorks = false;
  }
}

// Goes on to another state, one step; what is typed belongs to the step before.
function go(change, typed) {
  wake();
  scrollInstead();
  const next = { ...state, ...change };
  if (!differs(next, state, Object.keys(INITIAL))) return;
  if (typed) {
    if (pendingWrite === 'pushState') writeNow();
    apply(next);
    writeLater('replaceState', 250);
    return;
  }
  writeNow();
  past.push(state);
  steps++;
  apply(next);
  writeSoon();
}

const canUndo = () => addressWorks ? steps > 0 : past.length > 0;

function undo() {
  writeNow();
  if (addressWorks && steps > 0) history.back();
  else if (past.length) apply(past.pop());
}

function comeBack(event) {
  wake();
  scrollInstead();
  const before = event.state && event.state.flame;
  steps = Number.isInteger(before) ? before : 0;
  clearTimeout(waiting);
  pendingWrite = '';
  apply(stateOf(location));
}

// Shows a state; does no more than what changes takes.
function apply(next) {
  turned = next.icicle !== state.icicle || next.around !== state.around;
  const rebuilt = differs(next, state, ['order', 'hide', 'only', 'around', 'sides', 'by']);
  const moved = rebuilt || differs(next, state, ['zoom', 'icicle']);
  const searched = rebuilt || differs(next, state, ['pattern', 'pinned', 'ignoreCase']);
  state = next;
  icicle = state.icicle;
  if (input.value !== state.pattern) input.value = state.pattern;
  if (rebuilt) {
    deselect();
    forget();
    dropDrawing();
    view = hovered = null;
    arrange(state);
  }
  if (moved) showRun(find(state.zoom));
  if (searched) searchAll();
  if (moved || searched) mark();
  placeHeader();
  placeStatus();
}

// Shows the run that fills the width; says so when the address asked for more than there is.
function showRun(run) {
  const again = selected && { node: selected.node, pane: selected.pane, focus: root.contains(document.activeElement) && cellOf.has(document.activeElement) };
  deselect();
  draw(viewOf(run));
  settleSoon(0);
  const cell = again && cells.find(cell => cell.node === again.node && cell.pane === again.pane);
  if (cell) select(cell, again.focus);
  else hint(!run.exact && count ? 'What the address points at is not here; this is the nearest.' : '');
}
