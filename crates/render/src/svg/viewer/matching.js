// Which names a pattern matches; no pattern holds the page. One that backtracks takes ever so long
// over a single name, and nothing ends that but the end of the thread: what could take long is
// matched by a worker. Where a page may have none, it is matched in slices, unless a single name
// could take too long.

// Steps of a matcher that nobody notices, and how long the others may take in milliseconds.
const EASY = 2e7, PATIENCE = 2000, SLICE = 20;
const GIVEN_UP = 'Given up: this pattern takes too long.';

function matcherOf(pattern, ignoreCase) {
  try {
    return new RegExp(pattern, ignoreCase ? 'iu' : 'u');
  } catch (strict) {
    // Escapes such as `\-` are errors in unicode mode only; people type them.
    return new RegExp(pattern, ignoreCase ? 'i' : '');
  }
}

// At most how many steps a name of some length takes: every place to start from, for every place
// where a repetition may end, for both ways of everything that may be left out. A repetition of
// what can match in several ways, and a reference back, have no such bound.
function stepsOf(pattern) {
  const open = [false];
  let loops = 1, ways = 1, choice = false;
  for (const [token] of pattern.matchAll(/\\[^]|\[(?:\\[^]|[^\]\\])*\]|\(\??|\{\d+,?\d*\}\??|[*+?]\??|[^]/g)) {
    if (token === ')') {
      choice = open.pop();
      open[open.length - 1] = open[open.length - 1] || choice;
      continue;
    }
    if (token[0] === '(') open.push(false);
    else if (token === '|' && open.length > 1 || token[0] === '?') ways *= 2;
    else if (/^([*+]|{\d)/.test(token)) loops = choice ? Infinity : loops + 1;
    else if (/^\\[1-9k]/.test(token)) loops = Infinity;
    if (/^([*+?|]|{\d)/.test(token)) open[open.length - 1] = true;
    choice = false;
  }
  return length => length ** loops * ways;
}

// What is known of each search that is shown: `hits`, for each name whether it matches, or a
// `complaint`, or how to `stop` what is under way.
let outcomes = new Map();

function outcomeOf(pattern, before) {
  const { ignoreCase } = state, key = (ignoreCase ? 'i/' : '/') + pattern;
  const outcome = outcomes.get(key) || before.get(key) || startMatching(pattern, ignoreCase);
  outcomes.set(key, outcome);
  return outcome;
}

function startMatching(pattern, ignoreCase) {
  const outcome = { complaint: '', hits: null, stop: null };
  try {
    const matcher = matcherOf(pattern, ignoreCase), steps = stepsOf(pattern);
    const longest = names.reduce((most, name) => Math.max(most, name.length), 0);
    if (names.reduce((sum, name) => sum + steps(name.length), 0) <= EASY) {
      outcome.hits = Uint8Array.from(names, name => matcher.test(name));
    } else matchBeside(matcher, outcome, () => {
      if (steps(longest) <= EASY) matchInSlices(matcher, outcome);
      else settleMatching(outcome, { complaint: 'Not searched: this pattern may take too long.' });
    });
  } catch (error) {
    outcome.complaint = 'Bad pattern: ' + String(error.message).split(': ').pop();
  }
  return outcome;
}

// What is not wanted any more is not told of.
function settleMatching(outcome, found) {
  if (outcome.stop) outcome.stop();
  Object.assign(outcome, found, { stop: null });
  if (Array.from(outcomes.values()).includes(outcome)) showSearches();
}

const WORKER = 'onmessage=({data:[s,f,n]})=>{postMessage(0);const m=new RegExp(s,f);postMessage(Uint8Array.from(n,x=>m.test(x)))}';

let workerAddress;

function matchBeside({ source, flags }, outcome, refused) {
  let worker, late;
  outcome.stop = () => {
    clearTimeout(late);
    if (worker) worker.terminate();
  };
  try {
    workerAddress = workerAddress || URL.createObjectURL(new Blob([WORKER], { type: 'text/javascript' }));
    worker = new Worker(workerAddress);
  } catch (forbidden) {
    setTimeout(refused);
    return;
  }
  worker.onerror = event => {
    event.preventDefault();
    refused();
  };
  // The worker's own start does not count.
  worker.onmessage = ({ data }) => {
    if (data) settleMatching(outcome, { hits: data });
    else late = setTimeout(settleMatching, PATIENCE, outcome, { complaint: GIVEN_UP });
  };
  worker.postMessage([source, flags, names]);
}

function matchInSlices(matcher, outcome) {
  const hits = new Uint8Array(names.length), start = performance.now();
  let at = 0, next = 0;
  outcome.stop = () => clearTimeout(next);
  (function slice() {
    const from = performance.now();
    while (at < names.length && performance.now() - from < SLICE) hits[at] = matcher.test(names[at++]);
    if (at === names.length) settleMatching(outcome, { hits });
    else if (from - start > PATIENCE) settleMatching(outcome, { complaint: GIVEN_UP });
    else next = setTimeout(slice);
  })();
}
