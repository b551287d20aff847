// The tree in columns over its nodes in pre-order: depth, parent, end, total and start.

const count = data.label.length;
const label = data.label, selfOf = data.self;
const depth = new Uint32Array(count), parent = new Int32Array(count), end = new Uint32Array(count);
const total = new Float64Array(count), start = new Float64Array(count);

function decodeTree() {
  const path = [];
  for (let i = 0; i < count; i++) {
    path.length -= Math.min(data.up[i], path.length);
    parent[i] = path.length ? path[path.length - 1] : -1;
    depth[i] = path.length;
    path.push(i);
    total[i] = selfOf[i];
    end[i] = i + 1;
  }
  for (let i = count - 1; i > 0; i--) {
    const p = parent[i];
    total[p] += total[i];
    if (end[p] < end[i]) end[p] = end[i];
  }
  const next = new Float64Array(count);
  for (let i = 1; i < count; i++) {
    const p = parent[i];
    start[i] = next[i] = next[p];
    next[p] += total[i];
  }
}
