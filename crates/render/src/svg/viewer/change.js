// What changed, in words, as diff/words.rs says it.

const LEVELS = ['', 'could be noise', 'real', 'real: by chance p < 0.1', 'real: by chance p < 0.05', 'real: by chance p < 0.01',
  'real: by chance p < 0.001', 'real: by chance p < 0.0001'];
const levelText = level => level === REST ? 'not tested without what is hidden' : (LEVELS[level] || '').replace('real', diff.word);

// A number with that many decimal places.
function decimal(size, places) {
  const scale = 10 ** places, units = Math.floor(size * scale + 0.5);
  return group(Math.floor(units / scale)) + '.' + String(units % scale).padStart(places, '0');
}

// A share of `diff.whole`, the total of before; that of after may be more.
function part(weight) {
  const share = weight / diff.whole;
  if (Math.abs(share - 1) < 1e-9) return '100%';
  if (share > 0 && share < 0.00005) return '<0.01%';
  return decimal(share < 1 ? Math.min(share * 100, 99.99) : share * 100, 2) + '%';
}

const sign = change => change > 0 ? '+' : '-';
const pointsOf = change => `${sign(change)}${decimal(Math.abs(change) / diff.whole * 100, 2)} points`;
const percentOf = (change, before) => `${sign(change)}${decimal(Math.abs(change) / scaled(before) * 100, 1)}%`;

// What a frame weighs and weighed, without what that means.
function weighed(before, after) {
  const { scale } = diff;
  if (before === ZERO) return `${amount(after)}, ${part(Number(after))}`;
  if (after === ZERO) return `was ${amount(before, scale)}, ${part(scaled(before))}`;
  const from = scale ? amount(before, scale) : numberText(before);
  const shares = changeOf(before, after) === 0 ? part(Number(after)) : `${part(scaled(before))} → ${part(Number(after))}`;
  return `${before === after && !scale ? '' : `${from} → `}${amount(after)}, ${shares}`;
}

function measure(what, before, after, level) {
  if (before === ZERO && after === ZERO) return `${what} none`;
  const change = changeOf(before, after), said = [change === 0 ? 'unchanged' : pointsOf(change)];
  if (change !== 0 && before > 0 && after > 0) said.push(percentOf(change, before));
  if (change !== 0) said.push(levelText(level));
  return `${what} ${weighed(before, after)}: ${said.filter(Boolean).join(', ')}`;
}

const presence = node => isNew(node) === isGone(node) ? '' : isNew(node) ? 'new: ' : 'vanished: ';
const sidesOf = cell => [sumOf(cell.node, cell.last, totalBefore), sumOf(cell.node, cell.last, totalAfter)];

function titleOfChange(cell) {
  const [before, after] = sidesOf(cell), { node } = cell;
  if (cell.thin) return `… ${runText(cell, shortName)}, ${weighed(before, after)}`;
  const own = attributesOf(cell);
  if (own && own.title !== undefined) return own.title;
  const byTotal = state.by === 'total';
  const moved = byTotal ? changeOf(before, after) : changeOf(selfBefore[node], selfAfter[node]);
  const said = moved === 0 ? ['unchanged'] : [pointsOf(moved), levelText(sureOf(node, byTotal))];
  const change = `${state.by} ${said.filter(Boolean).join(', ')}`;
  return `${tooltipName(nameOf(node))} (${presence(node)}${weighed(before, after)}; ${change})`;
}

// What is said of the total, and of the frame's own weight.
function changesOf(cell) {
  const [before, after] = sidesOf(cell), { node } = cell;
  const start = cell.thin ? '' : presence(node);
  const text = start + measure('total', before, after, cell.thin ? UNTESTED : sureOf(node, true));
  let own = cell.thin ? '' : measure('self', selfBefore[node], selfAfter[node], sureOf(node, false));
  if (diff.ratio && before > 0 && after > 0) own += `; ${decimal(Number(after) / Number(before), 3)} ${diff.ratio}`;
  return [[text], own];
}

// Shares of what a search finds, before and after.
function sharesOfChange(search) {
  const before = matchedWeight(search, 0, count, totalBefore), after = matchedWeight(search, 0, count, totalAfter);
  const found = part(Number(after));
  return changeOf(before, after) === 0 ? found : `${part(scaled(before))} → ${found}`;
}
