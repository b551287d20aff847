// The tree that is shown, in columns over its nodes in pre-order.

let count = 0;
let label, depth, parent, end, total, selfOf, start;
// Only in trees that have them: self weights before, what the parent did itself before a node in the
// order of time, fills of single nodes, how sure changes are.
let selfBefore, gapAt, fillAt, sure;
// What is drawn: one graph, or those of two profiles side by side, each with widths of its own. The
// first one's are `selfOf`, `total` and `start`.
let panes = [];

// Of two trees one behind the other the second one starts at a position.
function grow(columns, second = 0) {
  grown = columns;
  callersAt = second;
  ({ label, depth, self: selfOf, before: selfBefore, gap: gapAt, fill: fillAt, sure } = columns);
  count = label.length;
  // Names of this function are faster to reach than those of the whole script.
  const levels = depth, up = parent = new Int32Array(count), ends = end = new Uint32Array(count);
  const path = [];
  for (let i = 0; i < count; i++) {
    const level = levels[i];
    up[i] = level ? path[level - 1] : -1;
    path[level] = i;
  }
  for (let i = count - 1; i >= 0; i--) {
    const p = up[i], last = ends[i] || i + 1;
    ends[i] = last;
    if (p >= 0 && ends[p] < last) ends[p] = last;
  }
  selfAfter = selfOf;
  panes = diff ? panesOfSides() : [paneOf('', selfOf)];
  if (second) panes.unshift({ ...panes[0], root: second, down: false });
  if (second) panes[1].down = true;
  ({ self: selfOf, total, start } = panes[0]);
}

// A graph whose boxes are as wide as `self` and what stands above them.
function paneOf(name, self) {
  const levels = depth, total = sumsOf(self), start = new self.constructor(count);
  // For each level where the next node of it starts; the first is 0, in numbers of that kind.
  const edges = [start[0]];
  for (let i = 0; i < count; i++) {
    const level = levels[i], edge = gapAt ? edges[level] + gapAt[i] : edges[level];
    start[i] = edge;
    edges[level] = edge + total[i];
    edges[level + 1] = edge;
  }
  return { name, self, total, start, root: 0, left: 0, width: 0, rows: 1 };
}

// For each node the weight of it and of all nodes above it.
function sumsOf(self) {
  const up = parent, sums = self.slice();
  for (let i = count - 1; i > 0; i--) if (up[i] >= 0) sums[up[i]] += sums[i];
  return sums;
}

const nameOf = node => names[label[node]];
const sumOf = (first, last, of = total) => {
  if (first >= last) return ZERO;
  let sum = of[first];
  for (let i = end[first]; i < last; i = end[i]) sum += of[i];
  return sum;
};
