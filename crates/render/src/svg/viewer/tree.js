// The tree that is shown, in columns over its nodes in pre-order.

let count = 0;
let label, depth, parent, end, total, selfOf, start;
// Only in trees that have them: self weights before, and fills of single nodes.
let selfBefore, fillAt;

function grow(columns) {
  ({ label, depth, self: selfOf, before: selfBefore, fill: fillAt } = columns);
  count = label.length;
  parent = new Int32Array(count);
  end = new Uint32Array(count);
  total = weights(count);
  start = weights(count);
  const path = [];
  for (let i = 0; i < count; i++) {
    parent[i] = depth[i] ? path[depth[i] - 1] : -1;
    path[depth[i]] = i;
    total[i] = selfOf[i];
    end[i] = i + 1;
  }
  for (let i = count - 1; i > 0; i--) {
    const p = parent[i];
    total[p] += total[i];
    if (end[p] < end[i]) end[p] = end[i];
  }
  const next = weights(count);
  for (let i = 1; i < count; i++) {
    const p = parent[i];
    start[i] = next[i] = next[p];
    next[p] += total[i];
  }
}

const nameOf = node => names[label[node]];
const sumOf = (first, last) => {
  let sum = ZERO;
  for (let i = first; i < last; i = end[i]) sum += total[i];
  return sum;
};
