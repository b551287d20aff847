// The tree that is shown, in columns over its nodes in pre-order.

let count = 0;
let label, depth, parent, end, total, selfOf, start;
// Only in trees that have them: self weights before, fills of single nodes, how sure changes are.
let selfBefore, fillAt, sure;
// What is drawn: one graph, or those of two profiles side by side, each with widths of its own. The
// first one's are `selfOf`, `total` and `start`.
let panes = [];

function grow(columns) {
  ({ label, depth, self: selfOf, before: selfBefore, fill: fillAt, sure } = columns);
  count = label.length;
  parent = new Int32Array(count);
  end = new Uint32Array(count);
  const path = [];
  for (let i = 0; i < count; i++) {
    parent[i] = depth[i] ? path[depth[i] - 1] : -1;
    path[depth[i]] = i;
    end[i] = i + 1;
  }
  for (let i = count - 1; i > 0; i--) {
    const p = parent[i];
    if (end[p] < end[i]) end[p] = end[i];
  }
  selfAfter = selfOf;
  panes = diff ? panesOfSides() : [paneOf('', selfOf)];
  ({ self: selfOf, total, start } = panes[0]);
}

// A graph whose boxes are as wide as `self` and what stands above them.
function paneOf(name, self) {
  const total = sumsOf(self), start = new self.constructor(count), next = new self.constructor(count);
  for (let i = 1; i < count; i++) {
    const p = parent[i];
    start[i] = next[i] = next[p];
    next[p] += total[i];
  }
  return { name, self, total, start, left: 0, width: 0, top: 0 };
}

// For each node the weight of it and of all nodes above it.
function sumsOf(self) {
  const sums = self.slice();
  for (let i = count - 1; i > 0; i--) sums[parent[i]] += sums[i];
  return sums;
}

const nameOf = node => names[label[node]];
const sumOf = (first, last, of = total) => {
  if (first >= last) return ZERO;
  let sum = of[first];
  for (let i = end[first]; i < last; i = end[i]) sum += of[i];
  return sum;
};
