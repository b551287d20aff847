// Boxes as elements.

let view = null, width = data.width, rows = 1, staticRows = 1;
let icicle = false;
let cells = [];
const cellOf = new Map();
const boxOf = new Map();

const unitsOf = pixels => (pixels - 2 * data.margin) * 100;
const rowTop = depth => data.top + (icicle ? depth : rows - 1 - depth) * data.row;
const fillOf = cell => cell.thin ? 'url(#thin)' : data.palette[paint[label[cell.node]] >> 1];

function titleOf(cell) {
  const size = share(cell.weight, total[0]);
  if (cell.thin) return `… ${framesText(cell.last - cell.node)}, ${size}`;
  return `${tooltipName(nameOf(cell.node))} (${amount(cell.weight)}, ${size})`;
}

function drawCell(cell) {
  const g = element('g');
  const size = cell.right - cell.left, left = data.margin * 100 + cell.left;
  const y = rowTop(depth[cell.node]);
  const drawn = size >= data.gapFrom ? size - data.gap : size;
  g.append(element('title', {}, titleOf(cell)));
  const rect = { x: left / 100, y, width: drawn / 100, height: data.row - 1, fill: fillOf(cell) };
  if (drawn >= data.roundFrom) rect.rx = 2;
  if (!cell.thin && paint[label[cell.node]] & 1) {
    rect.stroke = '#8c959f';
    rect['stroke-dasharray'] = '3 2';
  }
  g.append(element('rect', rect));
  if (!cell.thin) {
    const room = Math.floor(Math.max(size - 1.5 * data.indent, 0) * 10 / data.fontSize);
    const text = fit(nameOf(cell.node), room);
    if (text) g.append(element('text', { x: (left + data.indent) / 100, y: y + 12 }, text));
  }
  if (cell.faded) g.setAttribute('opacity', '.5');
  return g;
}

// The boxes of the whole graph, kept while a part of it is shown: they are many, and most zooms
// end with going back to them.
let kept = null;

function draw(next) {
  const before = rows, wasWhole = view && view.up < 0, whole = next.up < 0;
  if (wasWhole && !whole) kept = { width, icicle, cells, rows, frames };
  view = next;
  if (kept && (kept.width !== width || kept.icicle !== icicle)) kept = null;
  if (whole && kept) {
    frames.replaceWith(kept.frames);
    ({ cells, rows, frames } = kept);
  } else {
    cells = layout(view, unitsOf(width));
    rows = cells.reduce((most, cell) => Math.max(most, depth[cell.node] + 1), staticRows);
    const drawn = frames.cloneNode(false);
    for (const cell of cells) drawn.append(drawCell(cell));
    frames.replaceWith(drawn);
    frames = drawn;
  }
  if (whole) kept = null;
  adopt();
  if (rows !== before) {
    resizeTo(rows);
    // The root stays where it was on the screen.
    if (standalone && !icicle) window.scrollBy(0, (rows - before) * data.row);
  }
}

// Connects the boxes in the document with the cells that they show.
function adopt() {
  cellOf.clear();
  boxOf.clear();
  let box = frames.firstElementChild;
  cells.forEach((cell, at) => {
    cell.at = at;
    cellOf.set(box, cell);
    boxOf.set(cell.node, box);
    box = box.nextElementSibling;
  });
  whenIdle(describeBoxes);
}

// What screen readers need; after the picture is there, since it takes longer than drawing.
function describeBoxes() {
  frames.setAttribute('role', 'tree');
  frames.setAttribute('aria-label', data.title);
  for (const [box, cell] of cellOf) {
    if (box.hasAttribute('role')) continue;
    box.setAttribute('role', 'treeitem');
    box.setAttribute('aria-level', depth[cell.node] + 1);
  }
}

let idle = 0;
function whenIdle(act) {
  const wait = window.requestIdleCallback || (act => setTimeout(act, 200));
  (window.cancelIdleCallback || clearTimeout)(idle);
  idle = wait(act);
}

function resizeTo(rows) {
  const bottom = data.top + rows * data.row;
  const lines = byId('footer').children.length;
  root.setAttribute('height', bottom + data.footerY + lines * data.footerLine);
  byId('foot').setAttribute('transform', `translate(0 ${bottom})`);
}
