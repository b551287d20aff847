// Nodes by the names on the way to them, so that an address outlives the file it was made for.
//
// Each name on the way is four characters, a hash of it; siblings that agree in it are told apart
// by their order. A run of siblings is its first one's path, `~` and how many they are.

// What the way to one of the callers starts with.
const CALLERS = '!';
const DIGITS = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_';

function hashOf(name) {
  let hash = 0x811c9dc5;
  for (let k = 0; k < name.length; k++) hash = Math.imul(hash ^ name.charCodeAt(k), 0x01000193);
  return (hash ^ hash >>> 24) & 0xffffff;
}

function tokenOf(node) {
  const hash = hashOf(nameOf(node));
  let token = hash;
  for (let i = parent[node] + 1; i < node; i = end[i]) if (hashOf(nameOf(i)) === hash) token++;
  return [18, 12, 6, 0].map(shift => DIGITS[token >> shift & 63]).join('');
}

function pathOf(node) {
  const tokens = [], root = rootOf(node);
  for (let i = node; i > root; i = parent[i]) tokens.push(tokenOf(i));
  return (root ? CALLERS : '') + tokens.reverse().join('');
}

// The run that a path leads to; `exact` tells whether all of the way was found. What is not found
// ends at the deepest node of the way that is.
function find(path) {
  const isCallers = path[0] === CALLERS, [way, length] = path.slice(isCallers ? 1 : 0).split('~');
  let node = isCallers ? callersAt : 0, exact = count > 0 && (!isCallers || isAround());
  for (let at = 0; at < way.length && exact; at += 4) {
    const token = way.slice(at, at + 4);
    let child = node + 1;
    while (child < end[node] && tokenOf(child) !== token) child = end[child];
    exact = child < end[node];
    if (exact) node = child;
  }
  let last = count ? end[node] : 0;
  if (exact && length && parent[node] >= 0) {
    for (let k = 1; k < +length && last < end[parent[node]]; k++) last = end[last];
  }
  return { first: node, last, exact };
}

function pathOfRun(first, last) {
  if (last === end[first]) return pathOf(first);
  let length = 0;
  for (let i = first; i < last; i = end[i]) length++;
  return pathOf(first) + '~' + length;
}
