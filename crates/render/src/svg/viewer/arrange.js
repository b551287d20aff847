// The tree of the file without what is hidden, in the order that was asked for.

// The weight of all there is, hidden or not.
let everything = ZERO;

function arrange({ order, hide, only }) {
  grow(data.byTime && order !== 'time' ? merged(base) : base);
  everything = count ? total[0] : ZERO;
  if (count && (hide.length || only.length)) grow(picked(keptSelf(hide, only)));
  if (order === 'weight') grow(picked(selfOf, true));
}

// The self weights that are left when subtrees are hidden, and all stacks that lack a name.
function keptSelf(hide, only) {
  const kept = selfOf.slice();
  for (const path of hide) {
    const run = find(path);
    if (run.exact) kept.fill(ZERO, run.first, run.last);
  }
  for (const name of only) {
    for (let i = 0; i < count;) {
      if (nameOf(i) === name) i = end[i];
      else kept[i++] = ZERO;
    }
  }
  return kept;
}

// The nodes that those weights leave, siblings by weight or as they were.
function picked(self, byWeight) {
  const sums = weights(count), order = [];
  for (let i = count - 1; i >= 0; i--) {
    sums[i] += self[i];
    if (i) sums[parent[i]] += sums[i];
  }
  const pending = [0];
  while (pending.length) {
    const node = pending.pop(), above = [];
    order.push(node);
    for (let i = node + 1; i < end[node]; i = end[i]) if (sums[i] > 0) above.push(i);
    if (byWeight) above.sort((a, b) => sums[a] < sums[b] ? 1 : sums[a] > sums[b] ? -1 : a - b);
    for (let k = above.length - 1; k >= 0; k--) pending.push(above[k]);
  }
  const columns = {
    label: new Uint32Array(order.length),
    depth: new Uint32Array(order.length),
    self: weights(order.length),
  };
  order.forEach((node, k) => {
    columns.label[k] = label[node];
    columns.depth[k] = depth[node];
    columns.self[k] = self[node];
  });
  return columns;
}

// A tree in the order of time with siblings of one name put together, in the order of names.
function merged(columns) {
  grow(columns);
  const ids = new Map(), of = new Uint32Array(count), above = [], labels = [], depths = [], own = [];
  for (let i = 0; i < count; i++) {
    const under = i ? of[parent[i]] : 0, key = under * names.length + label[i];
    let id = i ? ids.get(key) : undefined;
    if (id === undefined) {
      id = labels.length;
      ids.set(key, id);
      labels.push(label[i]);
      depths.push(depth[i]);
      own.push(ZERO);
      above.push([]);
      if (i) above[under].push(id);
    }
    of[i] = id;
    own[id] += selfOf[i];
  }
  const order = [], pending = count ? [0] : [];
  const byName = (a, b) => names[labels[a]] < names[labels[b]] ? 1 : -1;
  while (pending.length) {
    const node = pending.pop();
    order.push(node);
    pending.push(...above[node].sort(byName));
  }
  const found = weights(order.length);
  order.forEach((node, k) => { found[k] = own[node]; });
  return {
    label: Uint32Array.from(order, node => labels[node]),
    depth: Uint32Array.from(order, node => depths[node]),
    self: found,
  };
}
