// Two profiles in one tree: what each frame weighed before and after, and which widths follow.

// Self weights after; in a tree of one profile, all there are.
let selfAfter, totalAfter, totalBefore;

const PANES = { union: ['union'], after: ['after'], before: ['before'], delta: ['delta'], both: ['before', 'after', 'delta'] };
const SIDES = Object.keys(PANES);
// In a word, and in a sentence.
const SHOWN = {
  union: ['after + vanished', 'After, and beside it what vanished, as wide as it was'],
  after: ['after', 'After alone'],
  before: ['before', 'Before alone'],
  delta: ['change', 'Change alone: what did not change has no width'],
  both: ['side by side', 'Before, after and change side by side'],
};

const isNew = node => totalBefore[node] === ZERO;
const isGone = node => totalAfter[node] === ZERO;
// Whether a run of thin frames, or a frame, holds nothing that is still there.
const isGoneRun = cell => sumOf(cell.node, cell.last, totalAfter) === ZERO;

// A weight of before in the measure of after.
const scaled = before => Number(before) * diff.numerator / diff.denominator;

// What was added to a weight, in the measure of after.
function changeOf(before, after) {
  const from = scaled(before), to = Number(after);
  // Fractions are off in their last digits.
  return Math.abs(to - from) <= 1e-9 * Math.max(from, to) ? 0 : to - from;
}

// The width that is a frame's own in each kind of graph.
const OWN_WIDTH = {
  union: node => isGone(node) ? scaled(selfBefore[node]) : Number(selfAfter[node]),
  after: node => Number(selfAfter[node]),
  before: node => scaled(selfBefore[node]),
  delta: node => Math.abs(changeOf(selfBefore[node], selfAfter[node])),
};

function panesOfSides() {
  totalAfter = sumsOf(selfAfter);
  totalBefore = sumsOf(selfBefore);
  return PANES[state.sides].map(name => {
    const own = new Float64Array(count), widthOf = OWN_WIDTH[name];
    for (let i = 0; i < count; i++) own[i] = widthOf(i);
    return paneOf(name, own);
  });
}

// How sure a change is, of self weight in the lower four bits of `sure`, of the total in the upper
// ones.
const UNTESTED = 0, NOISE = 1, REST = 15;
const sureOf = (node, total) => total ? sure[node] >> 4 : sure[node] & 15;

// How sure changes are where a part of the stacks is left out: totals of the rest were not tested.
function sureOfRest(after, before) {
  const left = sure.slice(), restAfter = sumsOf(after), restBefore = sumsOf(before);
  for (let i = 0; i < count; i++) {
    const same = restAfter[i] === totalAfter[i] && restBefore[i] === totalBefore[i];
    if (!same) left[i] = left[i] & 15 | REST << 4;
  }
  return left;
}

// The place in the palette, whose order is that of diff/looks.rs: no change, growth by strength,
// shrinking by strength, what could be noise; then new frames and vanished ones, each with no
// change, change by strength, what could be noise.
function lookOf(node) {
  const byTotal = state.by === 'total', { steps } = diff;
  const change = byTotal ? changeOf(totalBefore[node], totalAfter[node]) : changeOf(selfBefore[node], selfAfter[node]);
  const one = isNew(node) !== isGone(node), base = !one ? 0 : isNew(node) ? 2 * steps + 2 : 3 * steps + 4;
  const level = sureOf(node, byTotal || (one && change === 0));
  const noise = level === NOISE || level === REST;
  if (change === 0) return one && noise ? base + steps + 1 : base;
  if (noise) return base + (one ? steps : 2 * steps) + 1;
  const part = Math.sqrt(Math.abs(change) / diff.most[byTotal ? 1 : 0]);
  const step = Math.min(Math.max(Math.ceil(part * steps), 1), steps);
  return base + step + (one || change > 0 ? 0 : steps);
}

const nextSides = () => SIDES[(SIDES.indexOf(state.sides) + 1) % SIDES.length];
const turnSides = () => diff && go({ sides: nextSides() });
const colourBy = () => diff && go({ by: state.by === 'total' ? 'self' : 'total' });
