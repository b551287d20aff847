// Boxes as elements.

let view = null, width = data.width, rows = 1, staticRows = 1;
let icicle = false;
let cells = [];
const cellOf = new Map();
const boxOf = new Map();

const unitsOf = pixels => (pixels - 2 * data.margin) * 100;
const rowTop = (pane, depth) => paneTop(pane) + (growsDown(pane) ? depth : panes[pane].rows - 1 - depth) * data.row;
const fillIndex = node => diff ? lookOf(node) : fillAt ? fillAt[node] : paint[label[node]] >> 1;
const fillOf = cell => cell.thin ? thinFill(cell) : data.palette[fillIndex(cell.node)];
// The colour of the text, where it is not that of all: on what is faded, black can always be read.
const inkOf = cell => cell.faded ? '#000' : data.inks && data.inks[fillIndex(cell.node)];
const isHatched = cell => cell.thin && cell.right - cell.left >= data.hatchFrom;
const thinFill = cell => isHatched(cell)
  ? diff && isGoneRun(cell) ? 'url(#thin-gone)' : 'url(#thin)'
  : diff && isGoneRun(cell) ? '#c9d5e2' : '#d4d8de';
// A frame is drawn once in every pane.
const keyOf = (node, pane) => pane * count + node;
const boxFor = cell => boxOf.get(keyOf(cell.node, cell.pane));
const attributesOf = cell => (!cell.thin && data.attributes && data.attributes[label[cell.node]]) || null;
// The rectangle of a box, which may be within a link.
const rectOf = box => box.children[1].localName === 'a' ? box.children[1].firstChild : box.children[1];

const isDashed = cell => !cell.thin && (paint[label[cell.node]] & 1) === 1;
// The colour of the edge at rest. Narrow boxes would be nothing but edge.
const hasOwnEdge = cell => data.edges && !cell.thin && cell.right - cell.left >= data.roundFrom;
const edgeOf = cell => isDashed(cell) ? '#8c959f'
  : isAround() && !cell.node ? '#1f2328'
  : hasOwnEdge(cell) && data.edges[fillIndex(cell.node)] || data.stroke;

function titleOf(cell) {
  if (diff) return titleOfChange(cell);
  const size = share(cell.weight, whole);
  if (cell.thin) return `… ${runText(cell, shortName)}, ${size}`;
  const own = attributesOf(cell);
  if (own && own.title !== undefined) return own.title;
  return `${tooltipName(nameOf(cell.node))} (${amount(cell.weight)}, ${size}${change(cell.node)})`;
}

const shortName = node => tooltipName(nameOf(node));

const NARROWEST = data.uniform || Math.min(...data.ascii);

function drawCell(cell) {
  const own = attributesOf(cell), g = element('g', own ? own.group : {});
  const { left } = cell, size = cell.right - left, edge = edgeOf(cell);
  const y = rowTop(cell.pane, depth[cell.node]);
  const drawn = size >= data.gapFrom ? size - data.gap : size;
  g.append(element('title', {}, titleOf(cell)));
  const rect = { x: left / 100, y, width: drawn / 100, height: data.row - 1, fill: fillOf(cell) };
  if (drawn >= data.roundFrom) rect.rx = 2;
  if (edge) rect.stroke = edge;
  if (isDashed(cell)) rect['stroke-dasharray'] = '3 2';
  if (cell.faded) rect.opacity = '.5';
  let inner = g;
  if (own && own.href !== undefined) {
    inner = element('a', { href: own.href, target: own.target || '_top', ...own.link });
    g.append(inner);
  }
  inner.append(element('rect', rect));
  const room = Math.floor(Math.max(size - 1.5 * data.indent, 0) * 10 / data.fontSize);
  // Most boxes have no room for anything.
  if (!cell.thin && room >= NARROWEST) {
    const text = fit(nameOf(cell.node), room, data.uniform), ink = inkOf(cell);
    const at = { x: (left + data.indent) / 100, y: y + data.baseline };
    if (ink) at.fill = ink;
    if (text) inner.append(element('text', at, text));
  }
  if (cell.faded) g.classList.add('faded');
  return g;
}

// The boxes of the whole graph, kept while a part of it is shown: they are many, and most zooms
// end with going back to them.
let kept = null;

// They stay in the document, below a sheet that looks like the background: to take thousands of
// elements out, or to move them away, and to put them back takes longer than to draw what is seen
// of most parts.
function setAside() {
  for (const box of frames.querySelectorAll('[tabindex]')) box.removeAttribute('tabindex');
  frames.removeAttribute('id');
  frames.setAttribute('aria-hidden', 'true');
  kept.sheet = byId('background').cloneNode();
  kept.sheet.removeAttribute('id');
  kept.sheet.setAttribute('class', 'ground');
  frames.after(kept.sheet);
}

function bringBack() {
  frames.remove();
  kept.sheet.remove();
  ({ cells, rows, frames } = kept);
  frames.removeAttribute('aria-hidden');
  frames.setAttribute('id', 'frames');
}

function forget() {
  if (kept && kept.frames !== frames) {
    kept.frames.remove();
    kept.sheet.remove();
  }
  kept = null;
}

function draw(next) {
  finishDrawing();
  link(null);
  const before = bottom, wasWhole = view && view.up < 0, whole = next.up < 0;
  if (wasWhole && !whole) kept = { width, icicle, cells, rows, frames };
  view = next;
  if (kept && (kept.width !== width || kept.icicle !== icicle)) forget();
  if (whole && kept) {
    bringBack();
    rowsOf(cells);
    adopt();
  } else {
    cells = layout(view, unitsOf(width));
    rows = rowsOf(cells);
    drawCells();
  }
  drawAround();
  if (whole) forget();
  if (bottomOf(rows) !== before) {
    resizeTo(rows);
    // The root stays where it was on the screen.
    if (!icicle) settleSoon(bottom - before);
  }
  whenIdle(describeBoxes);
}

// Boxes narrower than this can wait for the next frame when there are many.
const NARROW = 300, MANY = 400, AT_ONCE = 1200;
let undrawn = 0, drawing = 0, nextBox = null;

function drawCells() {
  const drawn = frames.cloneNode(false);
  cellOf.clear();
  boxOf.clear();
  const many = cells.length > MANY;
  cells.forEach((cell, at) => {
    cell.at = at;
    if (many && cell.right - cell.left < NARROW) return;
    drawn.append(connect(drawCell(cell), cell));
  });
  drawn.setAttribute('id', 'frames');
  if (kept && kept.frames === frames) {
    setAside();
    kept.sheet.after(drawn);
  } else frames.replaceWith(drawn);
  frames = drawn;
  if (!many) return;
  undrawn = cells.length;
  nextBox = null;
  root.setAttribute('data-drawing', 'true');
  drawing = requestAnimationFrame(drawMore);
}

// Puts the narrow boxes where they belong, from the last one to the first.
function drawMore(_, most = AT_ONCE) {
  for (let left = most; undrawn > 0 && left > 0;) {
    const cell = cells[--undrawn];
    let box = boxFor(cell);
    if (!box) {
      left--;
      box = connect(drawCell(cell), cell);
      frames.insertBefore(box, nextBox);
      markBox(box, cell);
    }
    nextBox = box;
  }
  if (undrawn > 0) drawing = requestAnimationFrame(drawMore);
  else root.removeAttribute('data-drawing');
}

function finishDrawing() {
  cancelAnimationFrame(drawing);
  if (undrawn > 0) drawMore(0, Infinity);
}

// What is not drawn yet is of a tree that is there no more.
function dropDrawing() {
  cancelAnimationFrame(drawing);
  undrawn = 0;
  root.removeAttribute('data-drawing');
}

function connect(box, cell) {
  cellOf.set(box, cell);
  boxOf.set(keyOf(cell.node, cell.pane), box);
  return box;
}

// Connects the boxes in the document with the cells that they show.
function adopt() {
  cellOf.clear();
  boxOf.clear();
  let box = frames.firstElementChild;
  cells.forEach((cell, at) => {
    cell.at = at;
    connect(box, cell);
    box = box.nextElementSibling;
  });
}

// What screen readers need; after the picture is there, since it takes longer than drawing.
function describeBoxes() {
  finishDrawing();
  frames.setAttribute('role', 'tree');
  frames.setAttribute('aria-label', data.title);
  for (const [box, cell] of cellOf) describeBox(box, cell);
  // The way in for the tabulator key.
  if (!selected && cells.length) frames.firstElementChild.setAttribute('tabindex', '0');
}

function describeBox(box, cell) {
  if (box.hasAttribute('role')) return;
  box.setAttribute('role', 'treeitem');
  box.setAttribute('aria-level', depth[cell.node] + 1);
}

// Once nothing has happened for a moment.
let idle = 0;
function whenIdle(act) {
  clearTimeout(idle);
  idle = setTimeout(() => (window.requestIdleCallback || (act => act()))(act), 300);
}
