// Where each box stands in a view.

// A view is a run of sibling nodes [first, last) that fills the width, over its ancestors. The
// whole graph is the run of the root alone; a run of frames too thin to draw is a view as well.
const wholeView = () => ({ first: 0, last: count, span: count ? total[0] : ZERO, up: -1 });

function viewOf({ first, last }) {
  if (first === 0) return wholeView();
  return { first, last, span: sumOf(first, last), up: parent[first] };
}

// The boxes of all panes, those of one pane together.
function layout(view, width) {
  placePanes(width);
  return count ? collapse(panes.flatMap((pane, at) => layoutPane(view, pane, at)), depth[view.first]) : [];
}

// Deep outliers, as towers.rs has them: above the last row of which any pane has a hundredth, a frame
// with all above it is one box. A part of the graph counts its rows from where it starts.
function collapse(cells, from) {
  const widths = panes.map(() => []);
  let last = from + data.shallow, highest = 0;
  for (const { node, pane, left, right } of cells) {
    const row = depth[node];
    widths[pane][row] = (widths[pane][row] || 0) + right - left;
    highest = Math.max(highest, row);
  }
  widths.forEach((rows, at) => rows.forEach((width, row) => {
    if (width * data.rowParts >= panes[at].width) last = Math.max(last, row);
  }));
  if (highest <= last + data.fewRows) return cells;
  cells.forEach((cell, at) => {
    const above = cells[at + 1];
    if (depth[cell.node] === last + 1 && above && depth[above.node] > last + 1) cell.thin = cell.tower = true;
  });
  return cells.filter(cell => depth[cell.node] <= last + 1);
}

// The number of frames in a box, and of a tower its ends.
function runText({ node, last, tower }, named = nameOf) {
  let deepest = node;
  for (let i = node; tower && i < last; i++) if (depth[i] > depth[deepest]) deepest = i;
  return framesText(last - node) + (tower ? ` from ${named(node)} to ${named(deepest)}` : '');
}

// What a pane shows of a view: all that it has, where the view is of another graph.
const inPane = (node, { root }) => node >= root && node < end[root];
const partOf = (view, pane) => view.up >= 0 && inPane(view.first, pane) ? view
  : { first: pane.root, last: end[pane.root], up: -1 };

function layoutPane(whole, pane, at) {
  const cells = [], { total, start, width, left } = pane, view = partOf(whole, pane);
  for (let i = view.up; i >= 0; i = parent[i]) {
    if (total[i] > 0) cells.push({ node: i, last: end[i], left, right: left + width, weight: total[i], faded: true, pane: at });
  }
  cells.reverse();
  const base = start[view.first], span = Number(sumOf(view.first, view.last, total));
  if (span === 0) return cells;
  const edge = w => left + Math.floor(Number(w - base) * width / span + 0.5);
  // A run that fills the width may hold nothing that can be drawn alone, and is parted then: each part
  // can be zoomed into.
  const widest = view.last > end[view.first] ? width / 50 : Infinity;
  const pending = siblings(view.first, view.last, edge, left + width, at, widest).reverse();
  while (pending.length) {
    const cell = pending.pop();
    cells.push(cell);
    if (cell.thin) continue;
    const above = siblings(cell.node + 1, cell.last, edge, cell.right, at);
    for (let k = above.length - 1; k >= 0; k--) pending.push(above[k]);
  }
  // The function itself stands between its callers and its callees once.
  return pane.root ? cells.filter(cell => cell.node !== pane.root) : cells;
}

// Sums of fractions may be off in their last digit; no box sticks out of the one that it stands on.
function siblings(first, last, edge, most, pane, widest = Infinity) {
  const row = [], { start, total } = panes[pane];
  for (let i = first; i < last; i = end[i]) {
    const left = Math.min(edge(start[i]), most), right = Math.min(edge(start[i] + total[i]), most);
    const thin = right - left < data.minWidth;
    const before = row[row.length - 1];
    if (thin && before && before.thin && before.right === left && right - before.left <= widest) {
      before.last = end[i];
      before.weight += total[i];
      before.right = right;
    } else row.push({ node: i, last: end[i], left, right, weight: total[i], thin, pane });
  }
  return row.filter(cell => cell.right - cell.left >= (cell.thin ? data.minRun : 1));
}

// Panes stand beside each other where there is room, so that a frame is at one height in all of
// them; otherwise below each other.
const isBeside = () => panes.length > 1 && !isAround() && width >= data.besideFrom;
const headRoom = () => diff ? data.paneHead : 0;
const paneHeight = rows => rows * data.row + headRoom();
const bottomOf = rows => headHigh + (isAround()
  ? (panes[0].rows + panes[1].rows - 1) * data.row
  : paneHeight(rows) * (isBeside() ? 1 : panes.length));

// How many rows there are of a picture's cells, and of each pane's.
function rowsOf(cells) {
  const rows = cells.reduce((most, cell) => Math.max(most, depth[cell.node] + 1), staticRows);
  for (const pane of panes) pane.rows = isAround() ? 1 : rows;
  if (isAround()) for (const { node, pane } of cells) panes[pane].rows = Math.max(panes[pane].rows, depth[node] + 1);
  return rows;
}

function placePanes(whole) {
  const number = panes.length, beside = isBeside();
  panes.forEach((pane, k) => {
    pane.width = beside ? Math.floor((whole - (number - 1) * data.paneGap) / number) : whole;
    pane.left = data.margin * 100 + (beside ? k * (pane.width + data.paneGap) : 0);
  });
}

// In the group of the boxes, which moves down for a higher head.
const paneTop = k => data.top + headRoom() + (isAround() ? k * (panes[0].rows - 1) * data.row
  : isBeside() ? 0 : k * paneHeight(rows));
const growsDown = pane => panes[pane].down === undefined ? icicle : panes[pane].down;
