// Callers and callees of one function: its callees on a tree that grows downwards from it, its callers
// on one that grows upwards. In a stack that holds it more than once, the outermost call counts.

// Where the callers start in the columns of such a tree, and whether that is one.
let callersAt = 0;
const isAround = () => callersAt > 0;

function growAround(name) {
  const found = [];
  for (let i = 1; i < count;) {
    if (nameOf(i) === name) found.push(i);
    i = nameOf(i) === name ? end[i] : i + 1;
  }
  if (!found.length) return;
  const columns = { label: [], depth: [], self: [] };
  if (fillAt) columns.fill = [];
  append(columns, found.map(node => [node, ZERO]), calleesOf);
  const at = columns.label.length;
  append(columns, found.map(node => [node, total[node]]), callersOf);
  const kinds = { label, depth, self: selfOf, fill: fillAt };
  for (const key in columns) columns[key] = kinds[key].constructor.from(columns[key]);
  grow(columns, at);
}

// Groups of nodes, each with a weight, become one node each; `next` leads on from a node.
function append(columns, group, next) {
  const pending = [[0, group]];
  while (pending.length) {
    const [level, nodes] = pending.pop(), above = new Map();
    let self = ZERO;
    for (const [node, weight] of nodes) {
      self += next(node, weight, (to, weight) => {
        const same = above.get(label[to]);
        if (same) same.push([to, weight]); else above.set(label[to], [[to, weight]]);
      });
    }
    columns.label.push(label[nodes[0][0]]);
    columns.depth.push(level);
    columns.self.push(self);
    if (fillAt) columns.fill.push(fillAt[nodes[0][0]]);
    for (const group of Array.from(above.values()).reverse()) pending.push([level + 1, group]);
  }
}

// Both return what is the node's own.
function calleesOf(node, _, add) {
  for (let i = node + 1; i < end[node]; i = end[i]) add(i, ZERO);
  return selfOf[node];
}

function callersOf(node, weight, add) {
  if (parent[node] <= 0) return weight;
  add(parent[node], weight);
  return ZERO;
}

// The graph that a node is in.
const rootOf = node => isAround() && node >= callersAt ? callersAt : 0;
const isCaller = cell => isAround() && cell.node >= callersAt;
