// What a reader can do with the graph and with a box, with the keys for it.

const ORDERS = { name: 'by name', weight: 'by weight', file: 'as it was recorded' };

const orders = () => ['file', 'name', 'weight'].filter(order => order !== orderOfFile());
const nextOrder = () => orders()[(orders().indexOf(state.order) + 1) % orders().length];

const reset = () => go({ zoom: '', hide: [], only: [], around: '' });
const flip = () => go({ icicle: !state.icicle });
const reorder = () => go({ order: nextOrder() });
const toggleCase = () => go({ ignoreCase: !state.ignoreCase });

function resetSearch() {
  input.value = '';
  go({ pattern: '', pinned: [] });
  input.blur();
}

const hideCell = cell => cell.node && !cell.thin && !isAround() && go({
  hide: [...state.hide, pathOf(cell.node)],
  ...(cell.faded || cell.node === view.first ? { zoom: '' } : {}),
});
const focusOn = cell => !cell.thin && cell.node && go({ only: [...state.only, nameOf(cell.node)], zoom: '' });
const lookAround = cell => !cell.thin && !diff && (cell.node || isAround()) && go({ around: nameOf(cell.node), zoom: '' });
const copyName = cell => !cell.thin && copy(nameOf(cell.node), 'name');
const copyStack = cell => !cell.thin && copy(stackOf(cell.node), 'stack');

// A list below a button, of things of which one holds.
function openChoice(at, key, choices) {
  const box = at.getBoundingClientRect(), from = root.getBoundingClientRect();
  const rows = choices.map(([value, text]) => [text, state[key] === value ? '✓' : '', () => go({ [key]: value })]);
  openPanel(rows, box.left - from.left, box.bottom - from.top + 4, at.textContent);
}
const chooseOrder = () => openChoice(button.order, 'order', orders().map(order => [order, `Order ${ORDERS[order]}`]));
const chooseSides = () => openChoice(button.sides, 'sides', SIDES.map(sides => [sides, SHOWN[sides][1]]));

// Fingers have no keys.
const forDevice = rows => coarse ? rows.filter(row => row[2]).map(([text, , act]) => [text, '', act]) : rows;

function openMenu(cell, x, y) {
  const rows = [['Zoom', 'Enter', () => zoomTo(cell)]];
  if (!cell.thin) rows.push(['Copy name', 'c', () => copyName(cell)]);
  if (!cell.thin) rows.push(['Copy stack', 'C', () => copyStack(cell)]);
  if (cell.node && !cell.thin && !isAround()) rows.push(['Hide', 'h', () => hideCell(cell)]);
  if (cell.node && !cell.thin) rows.push(['Focus: only stacks with this function', 'f', () => focusOn(cell)]);
  if (cell.node && !cell.thin && !diff) rows.push(['Callers and callees of this function', 'a', () => lookAround(cell)]);
  if (!cell.thin) rows.push(['Search for this function', 's', () => searchName(cell)]);
  openPanel(forDevice(rows), x, y, 'Frame');
}

function searchName(cell) {
  if (cell.thin) return;
  input.value = '^' + nameOf(cell.node).replace(/[.*+?^${}()|[\]\\]/g, '\\$&') + '$';
  go({ pattern: input.value });
}

function openHelp() {
  const y = (standalone ? window.scrollY : 0) + FIRST_ROW + HIGH + 4;
  const rows = [
    ['Search', 'Ctrl-F, F3, /', () => input.focus()],
    ['Next and previous match', 'n, N'],
    ['Ignore case in searches', 'Ctrl-I', toggleCase],
    ['Keep a search, start another', 'Ctrl-Enter', keepSearch],
    [state.icicle ? 'Turn into a flame graph' : 'Turn into an icicle graph', 'i', flip],
    [`Order ${ORDERS[nextOrder()]}`, 'o', reorder],
    ...(diff ? [
      [SHOWN[nextSides()][1], 'd', turnSides],
      [`Colour by the change of ${state.by === 'total' ? 'self' : 'total'} weight`, 't', colourBy],
    ] : []),
    ['Undo', 'u, Backspace', undo],
    ['Show everything', 'Esc, 0', reset],
    ['Walk from box to box', 'arrows, Home'],
    ['Zoom into the box', 'Enter, click'],
    ['Copy its name, its stack', 'c, C'],
    ['Hide it, focus on its function', 'h, f'],
    ...(diff ? [] : [['Callers and callees of its function', 'a']]),
    ['More on a box', 'm, right click, long press'],
  ];
  openPanel(forDevice(rows), width, y, 'Keys');
}
