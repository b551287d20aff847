// Where each box stands in a view.

// A view is a run of sibling nodes [first, last) that fills the width, over its ancestors. The
// whole graph is the run of the root alone; a run of frames too thin to draw is a view as well.
const wholeView = () => ({ first: 0, last: count, base: ZERO, span: count ? total[0] : ZERO, up: -1 });

function viewOf({ first, last }) {
  if (first === 0) return wholeView();
  return { first, last, base: start[first], span: sumOf(first, last), up: parent[first] };
}

function layout(view, width) {
  const cells = [];
  if (!count) return cells;
  for (let i = view.up; i >= 0; i = parent[i]) {
    cells.push({ node: i, last: end[i], left: 0, right: width, weight: total[i], faded: true });
  }
  cells.reverse();
  const span = Number(view.span);
  const edge = w => Math.min(Math.floor(Number(w - view.base) * width / span + 0.5), width);
  const pending = siblings(view.first, view.last, edge).reverse();
  while (pending.length) {
    const cell = pending.pop();
    cells.push(cell);
    if (cell.thin) continue;
    const above = siblings(cell.node + 1, cell.last, edge);
    for (let k = above.length - 1; k >= 0; k--) pending.push(above[k]);
  }
  return cells;
}

function siblings(first, last, edge) {
  const row = [];
  for (let i = first; i < last; i = end[i]) {
    const left = edge(start[i]), right = edge(start[i] + total[i]);
    const thin = right - left < data.minWidth;
    const before = row[row.length - 1];
    if (thin && before && before.thin) {
      before.last = end[i];
      before.weight += total[i];
      before.right = right;
    } else row.push({ node: i, last: end[i], left, right, weight: total[i], thin });
  }
  return row.filter(cell => cell.right - cell.left >= (cell.thin ? data.minRun : 1));
}
