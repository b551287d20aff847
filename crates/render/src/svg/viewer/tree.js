// The tree that is shown, in columns over its nodes in pre-order.

let count = 0;
let label, depth, parent, end, total, selfOf, start;
// Only in trees that have them: self weights before, and fills of single nodes.
let selfBefore, fillAt;

function grow(columns) {
  ({ label, depth, self: selfOf, before: selfBefore, fill: fillAt } = columns);
  count = label.length;
  // Names of this function are faster to reach than those of the whole script.
  const levels = depth, up = parent = new Int32Array(count), ends = end = new Uint32Array(count);
  const sums = total = weights(count), starts = start = weights(count);
  sums.set(selfOf);
  const path = [];
  for (let i = 0; i < count; i++) {
    const level = levels[i];
    up[i] = level ? path[level - 1] : -1;
    path[level] = i;
  }
  for (let i = count - 1; i >= 0; i--) {
    const p = up[i], last = ends[i] || i + 1;
    ends[i] = last;
    if (p < 0) continue;
    sums[p] += sums[i];
    if (ends[p] < last) ends[p] = last;
  }
  // For each level where the next node of it starts.
  const edges = [ZERO];
  for (let i = 0; i < count; i++) {
    const level = levels[i], edge = edges[level];
    starts[i] = edge;
    edges[level] = edge + sums[i];
    edges[level + 1] = edge;
  }
}

const nameOf = node => names[label[node]];
const sumOf = (first, last) => {
  let sum = ZERO;
  for (let i = first; i < last; i = end[i]) sum += total[i];
  return sum;
};
