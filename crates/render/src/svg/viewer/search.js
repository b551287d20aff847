// Search by regular expression over all names, those of frames too thin to draw as well.

let ignoreCase = false;
// For each name whether it matches; null while nothing is searched for.
let hits = null;
// Matching nodes before each position, so that a thin run knows whether it holds one.
let hitsBefore = null;

function search(pattern) {
  hits = hitsBefore = null;
  let complaint = '';
  if (pattern) {
    try {
      const regex = new RegExp(pattern, ignoreCase ? 'iu' : 'u');
      hits = data.names.map(name => regex.test(name));
    } catch (strict) {
      // Escapes such as `\-` are errors in unicode mode only; people type them.
      try {
        const regex = new RegExp(pattern, ignoreCase ? 'i' : '');
        hits = data.names.map(name => regex.test(name));
      } catch (error) {
        complaint = 'Bad pattern: ' + String(error.message).split(': ').pop();
      }
    }
  }
  if (hits) {
    hitsBefore = new Uint32Array(count + 1);
    for (let i = 0; i < count; i++) hitsBefore[i + 1] = hitsBefore[i] + (hits[label[i]] ? 1 : 0);
  }
  input.setAttribute('class', complaint ? 'flame-input bad' : 'flame-input');
  input.setAttribute('aria-invalid', complaint ? 'true' : 'false');
  markMatches(complaint);
  placeHeader();
}

// Weight of the matches in a run of siblings; a match above another counts once.
function matchedWeight(first, last) {
  let weight = 0;
  for (let i = first; i < last;) {
    if (hits[label[i]]) {
      weight += total[i];
      i = end[i];
    } else i++;
  }
  return weight;
}

function matchedText() {
  const all = share(matchedWeight(0, count), total[0]);
  if (view.up < 0) return `Matched: ${all}`;
  let covered = false;
  for (let i = view.up; i >= 0; i = parent[i]) covered = covered || hits[label[i]];
  const inView = covered ? view.span : matchedWeight(view.first, view.last);
  return `Matched: ${share(inView, view.span)} of view, ${all} of all`;
}

function markMatches(complaint) {
  for (const [g, cell] of cellOf) {
    let mark = '';
    if (hits && cell.thin) mark = hitsBefore[cell.last] > hitsBefore[cell.node] ? 'thin-hit' : '';
    else if (hits) mark = hits[label[cell.node]] ? 'hit' : '';
    if (mark) g.setAttribute('class', mark); else g.removeAttribute('class');
  }
  const text = complaint || (hits ? matchedText() : '');
  matched.textContent = text;
  matched.setAttribute('class', complaint ? 'bad' : '');
  show(matched, text !== '');
}

function setIgnoreCase(on) {
  ignoreCase = on;
  button.ignorecase.setAttribute('aria-pressed', String(on));
  search(input.value);
}

function resetSearch() {
  input.value = '';
  search('');
  input.blur();
}
