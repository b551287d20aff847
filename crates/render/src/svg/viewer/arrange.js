// The tree of the file without what is hidden, in the order that was asked for.

// The weight of all there is, hidden or not.
let everything = ZERO;

function arrange({ order, hide, only }) {
  grow(order === 'file' ? base : merged(base));
  everything = count ? total[0] : ZERO;
  if (count && (hide.length || only.length)) grow(picked(keptNodes(hide, only)));
  if (count && order === 'weight') grow(picked(null, byWeight));
  if (count && order === 'name') grow(picked(null, byName));
}

// The nodes whose own weight is left when subtrees are hidden, and all stacks that lack a name.
function keptNodes(hide, only) {
  const kept = new Uint8Array(count).fill(1);
  for (const path of hide) {
    const run = find(path);
    if (run.exact) kept.fill(0, run.first, run.last);
  }
  for (const name of only) {
    for (let i = 0; i < count;) {
      if (nameOf(i) === name) i = end[i];
      else kept[i++] = 0;
    }
  }
  return kept;
}

// The columns without the weight of the nodes that are not kept. What weighs nothing any more has
// not changed either.
function keptColumns(kept) {
  const columns = { label, depth, self: selfAfter, before: selfBefore, gap: gapAt, fill: fillAt, sure };
  if (!kept) return columns;
  const without = (column, blank) => column && column.map((value, i) => kept[i] ? value : blank);
  columns.self = without(selfAfter, ZERO);
  columns.before = without(selfBefore, ZERO);
  columns.gap = gapAt && gapAt.map((value, i) => i && kept[parent[i]] ? value : ZERO);
  if (data.same !== undefined) columns.fill = without(fillAt, data.same);
  if (diff) columns.sure = sureOfRest(columns.self, columns.before);
  return columns;
}

// The nodes that have weight left, siblings in an order or as they were.
function picked(kept, compare) {
  const columns = keptColumns(kept), sums = new Uint8Array(count), order = [];
  for (let i = count - 1; i >= 0; i--) {
    if (columns.self[i] > 0 || (diff && columns.before[i] > 0)) sums[i] = 1;
    if (i) sums[parent[i]] |= sums[i];
  }
  if (compare) columns.gap = undefined;
  const pending = [0];
  while (pending.length) {
    const node = pending.pop(), above = [];
    order.push(node);
    for (let i = node + 1; i < end[node]; i = end[i]) if (sums[i] > 0) above.push(i);
    if (compare) above.sort(compare);
    for (let k = above.length - 1; k >= 0; k--) pending.push(above[k]);
  }
  return columnsOf(order, columns);
}

function columnsOf(order, from) {
  const columns = {};
  for (const name in from) {
    const column = from[name];
    if (!column) continue;
    const to = columns[name] = new column.constructor(order.length);
    for (let k = 0; k < order.length; k++) to[k] = column[order[k]];
  }
  return columns;
}

const byWeight = (a, b) => total[a] < total[b] ? 1 : total[a] > total[b] ? -1 : a - b;
const byName = (a, b) => nameOf(a) < nameOf(b) ? -1 : nameOf(a) > nameOf(b) ? 1 : a - b;

// A tree in the order of time with siblings of one name put together.
function merged(columns) {
  grow(columns);
  const ids = new Map(), of = new Uint32Array(count), first = [], above = [];
  const self = selfAfter.slice(), before = selfBefore && selfBefore.slice();
  for (let i = 0; i < count; i++) {
    const under = i ? of[parent[i]] : 0, key = under * names.length + label[i];
    const same = i ? ids.get(key) : undefined;
    of[i] = same === undefined ? i : same;
    if (same === undefined) {
      ids.set(key, i);
      first.push(i);
      above[i] = [];
      if (i) above[under].push(i);
      continue;
    }
    self[same] += self[i];
    if (before) before[same] += before[i];
  }
  if (first.length === count) return columns;
  const order = [], pending = [0];
  while (pending.length) {
    const node = pending.pop();
    order.push(node);
    for (let k = above[node].length - 1; k >= 0; k--) pending.push(above[node][k]);
  }
  return columnsOf(order, { label, depth, self, before, fill: fillAt });
}

// How siblings stand in the file: 'time' where a name is there twice, else 'name', 'weight' or ''.
let known;
function orderOfFile() {
  if (known !== undefined) return known;
  grow(base);
  const last = new Int32Array(count).fill(-1);
  let name = true, weight = true, twice = false;
  for (let i = 1; i < count; i++) {
    const before = last[parent[i]];
    last[parent[i]] = i;
    if (before < 0) continue;
    if (label[before] === label[i]) twice = true;
    if (name && byName(before, i) > 0) name = false;
    if (weight && byWeight(before, i) > 0) weight = false;
  }
  known = twice ? 'time' : name ? 'name' : weight ? 'weight' : '';
  arrange(state);
  return known;
}
