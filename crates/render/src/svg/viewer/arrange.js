// The tree of the file without what is hidden, in the order that was asked for.

// The weight of all there is, hidden or not, and of all that is shown, of which shares are told.
let everything = ZERO, whole = ZERO;
// The columns that the tree is made of.
let grown = null;

function arrange({ order, hide, only, around }) {
  const from = order !== 'file' && readOrder() === 'time' ? merged(base) : base;
  if (grown !== from || diff) grow(from);
  everything = count ? total[0] : ZERO;
  if (count && (hide.length || only.length)) grow(picked(keptNodes(hide, only)));
  if (count && order !== 'file') grow(picked(null, order === 'weight' ? byWeight : byName()));
  whole = count ? total[0] : ZERO;
  if (count && around && !diff) growAround(around);
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
  const columns = keptColumns(kept), { self, before } = columns, up = parent, ends = end;
  const sums = new Uint8Array(count), order = new Uint32Array(count), pending = new Uint32Array(count);
  for (let i = count - 1; i >= 0; i--) {
    if (self[i] > 0 || (diff && before[i] > 0)) sums[i] = 1;
    if (i) sums[up[i]] |= sums[i];
  }
  if (compare) columns.gap = undefined;
  let length = 0;
  for (let waiting = 1; waiting;) {
    const node = pending[--waiting], from = waiting;
    order[length++] = node;
    for (let i = node + 1; i < ends[node]; i = ends[i]) if (sums[i]) pending[waiting++] = i;
    if (waiting > from + 1) lastFirst(pending, from, waiting, compare);
  }
  return columnsOf(order.subarray(0, length), columns);
}

// Sorts a part of an array so that what comes first stands last, from where it is taken.
function lastFirst(all, from, to, compare) {
  if (!compare) all.subarray(from, to).reverse();
  else if (to - from > 20) all.subarray(from, to).sort((a, b) => compare(b, a));
  else {
    for (let k = from + 1; k < to; k++) {
      const value = all[k];
      let at = k;
      for (; at > from && compare(all[at - 1], value) < 0; at--) all[at] = all[at - 1];
      all[at] = value;
    }
  }
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

// Numbers are compared faster than names.
let ranks = null;
function byName() {
  if (!ranks) {
    const places = names.map((_, at) => at).sort((a, b) => names[a] < names[b] ? -1 : names[a] > names[b] ? 1 : 0);
    ranks = new Uint32Array(names.length);
    for (let k = 1; k < places.length; k++) {
      const [before, at] = [places[k - 1], places[k]];
      ranks[at] = ranks[before] + (names[before] === names[at] ? 0 : 1);
    }
  }
  return (a, b) => ranks[label[a]] - ranks[label[b]] || a - b;
}

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
  readOrder();
  arrange(state);
  placePanes(unitsOf(width));
  rowsOf(cells);
  return known;
}

// Leaves the tree of the file.
function readOrder() {
  if (known !== undefined) return known;
  if (grown !== base) grow(base);
  // For each name the last node that has a child of it, plus 1.
  const seen = new Uint32Array(names.length), inOrder = byName();
  let name = true, weight = true, twice = false;
  for (let node = 0; node < count; node++) {
    for (let i = node + 1, before = -1; i < end[node]; before = i, i = end[i]) {
      if (seen[label[i]] === node + 1) twice = true;
      seen[label[i]] = node + 1;
      if (before < 0) continue;
      if (name && inOrder(before, i) > 0) name = false;
      if (weight && byWeight(before, i) > 0) weight = false;
    }
  }
  known = twice ? 'time' : name ? 'name' : weight ? 'weight' : '';
  return known;
}
