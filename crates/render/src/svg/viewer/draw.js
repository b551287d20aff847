// Boxes as elements.

let view = wholeView(), width = data.width, rows = 1, staticRows = 1;
let cells = [];
const cellOf = new Map();

function element(name, attributes, text) {
  const made = document.createElementNS(SVG, name);
  for (const key in attributes) made.setAttribute(key, attributes[key]);
  if (text !== undefined) made.textContent = text;
  return made;
}

const unitsOf = pixels => (pixels - 2 * data.margin) * 100;

function drawCell(cell) {
  const g = element('g');
  const size = cell.right - cell.left, left = data.margin * 100 + cell.left;
  const y = data.top + (rows - 1 - depth[cell.node]) * data.row;
  const drawn = size >= data.gapFrom ? size - data.gap : size;
  const name = data.names[label[cell.node]];
  const frameCount = cell.last - cell.node;
  g.append(element('title', {}, cell.thin
    ? `… ${group(frameCount)} ${frameCount === 1 ? 'frame' : 'frames'}, ${share(cell.weight, total[0])}`
    : `${tooltipName(name)} (${amount(cell.weight)}, ${share(cell.weight, total[0])})`));
  const rect = { x: left / 100, y, width: drawn / 100, height: data.row - 1 };
  rect.fill = cell.thin ? 'url(#thin)' : data.palette[data.colour[label[cell.node]]];
  if (drawn >= data.roundFrom) rect.rx = 2;
  if (!cell.thin && data.dashed[label[cell.node]]) {
    rect.stroke = '#8c959f';
    rect['stroke-dasharray'] = '3 2';
  }
  g.append(element('rect', rect));
  if (!cell.thin) {
    const room = Math.floor(Math.max(size - 1.5 * data.indent, 0) * 10 / data.fontSize);
    const text = fit(name, room);
    if (text) g.append(element('text', { x: (left + data.indent) / 100, y: y + 12 }, text));
  }
  if (cell.faded) g.setAttribute('opacity', '.5');
  return g;
}

// The boxes of the whole graph, kept while a part of it is shown: they are many, and most zooms
// end with going back to them.
let kept = null;

function draw() {
  const before = rows;
  const whole = view.up < 0;
  if (whole && kept && kept.width === width) {
    ({ cells, rows } = kept);
    frames.replaceChildren(kept.boxes);
  } else {
    cells = layout(view, unitsOf(width));
    rows = cells.reduce((most, cell) => Math.max(most, depth[cell.node] + 1), staticRows);
    const drawn = document.createDocumentFragment();
    for (const cell of cells) drawn.append(drawCell(cell));
    frames.replaceChildren(drawn);
  }
  kept = whole || (kept && kept.width !== width) ? null : kept;
  adopt();
  if (rows !== before) {
    resizeTo(rows);
    // The root stays where it was on the screen.
    if (standalone) window.scrollBy(0, (rows - before) * data.row);
  }
  markMatches();
  pin();
}

// Connects the boxes in the document with the cells that they show.
function adopt() {
  cellOf.clear();
  cells.forEach((cell, k) => cellOf.set(frames.children[k], cell));
}

function resizeTo(rows) {
  const bottom = data.top + rows * data.row;
  const lines = byId('footer').children.length;
  root.setAttribute('height', bottom + data.footerY + lines * data.footerLine);
  byId('foot').setAttribute('transform', `translate(0 ${bottom})`);
}
