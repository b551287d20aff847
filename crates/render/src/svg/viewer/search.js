// Search by regular expression over all names, those of frames too thin to draw as well.

// The colour of the search in the box, then those of the searches that are kept.
const COLOURS = [data.searchColour, '#3dc9f5', '#9be22d', '#ffe14d', '#ff8674', '#c79bff'];
const MOST = COLOURS.length - 1;

let searches = [];

// Matching nodes before each position, so that a thin run knows whether it holds one.
function searchFor(pattern, colour, outcomesBefore) {
  const { hits, complaint } = outcomeOf(pattern, outcomesBefore);
  const ink = colour === data.searchColour ? data.searchInk : '';
  const found = { pattern, colour, ink, hits, before: null, complaint };
  if (!hits) return found;
  const before = found.before = new Uint32Array(count + 1);
  for (let i = 0; i < count; i++) before[i + 1] = before[i] + hits[label[i]];
  return found;
}

function searchAll() {
  const before = outcomes;
  outcomes = new Map();
  searches = state.pinned.map((pattern, k) => searchFor(pattern, COLOURS[k % MOST + 1], before));
  if (state.pattern) searches.unshift(searchFor(state.pattern, COLOURS[0], before));
  for (const [key, { stop }] of before) if (stop && !outcomes.has(key)) stop();
  const complaint = state.pattern ? searches[0].complaint : '';
  input.setAttribute('class', complaint ? 'flame-input bad' : 'flame-input');
  input.setAttribute('aria-invalid', complaint ? 'true' : 'false');
  button.ignorecase.setAttribute('aria-pressed', String(state.ignoreCase));
}

// Once a search that took its time is done.
function showSearches() {
  searchAll();
  mark();
  placeHeader();
  placeStatus();
}

// Weight of the matches in a run of siblings; a match above another counts once.
function matchedWeight({ hits, before }, first, last, of = total) {
  let weight = ZERO;
  for (let i = first; i < last;) {
    if (hits[label[i]]) {
      weight += of[i];
      i = end[i];
    } else if (before[end[i]] === before[i]) i = end[i];
    else i++;
  }
  return weight;
}

function sharesOf(search) {
  if (diff) return sharesOfChange(search);
  if (isAround()) {
    const of = root => share(matchedWeight(search, root, end[root]), whole);
    return `${of(callersAt)} in callers, ${of(0)} in callees`;
  }
  const all = share(matchedWeight(search, 0, count), whole);
  if (view.up < 0) return all;
  let covered = false;
  for (let i = view.up; i >= 0; i = parent[i]) covered = covered || search.hits[label[i]];
  const inView = covered ? view.span : matchedWeight(search, view.first, view.last);
  return `${share(inView, view.span)} of view, ${all} of all`;
}

function matchedText(search) {
  const shares = `Matched: ${sharesOf(search)}`;
  const frames = framesText(search.before[count]);
  const long = `${shares} (${diff || isAround() ? frames : `${frames}, ${amount(matchedWeight(search, 0, count))}`})`;
  return textWidth(long) * data.uiSize / 1000 < width / 2 ? long : shares;
}

const holds = (search, cell) => search.hits && (cell.thin
  ? search.before[cell.last] > search.before[cell.node]
  : search.hits[label[cell.node]]);

function markBox(box, cell) {
  const found = searches.find(search => holds(search, cell));
  const colour = found ? found.colour : '';
  if ((cell.mark || '') === colour) return;
  cell.mark = colour;
  const thin = isHatched(cell) && colour === '#f05fd8' ? 'url(#thin-hit)' : colour;
  const rect = rectOf(box), text = rect.nextElementSibling;
  rect.setAttribute('fill', found ? thin : fillOf(cell));
  // White text of a dark box cannot be read on the colour of a match.
  const ink = found && !cell.faded ? found.ink : inkOf(cell);
  if (text && ink) text.setAttribute('fill', ink); else if (text) text.removeAttribute('fill');
  outline(box, cell);
}

// Colours the boxes that are drawn, and writes the shares.
function mark() {
  for (const [box, cell] of cellOf) markBox(box, cell);
  const typed = state.pattern ? searches[0] : null;
  const text = typed ? typed.complaint || (typed.hits ? matchedText(typed) : 'Searching …') : '';
  matched.textContent = text;
  matched.setAttribute('class', typed && typed.complaint ? 'bad' : '');
  show(matched, text !== '');
  drawChips();
}

function drawChips() {
  const kept = searches.slice(state.pattern ? 1 : 0);
  chips.replaceChildren(...kept.map((search, k) => {
    const text = `${cutEnd(search.pattern, 12000)} ${search.hits ? sharesOf(search) : '?'} ×`;
    const size = Math.ceil(textWidth(text) * 11 / 1000) + 14;
    const chip = element('g', { class: 'chip', role: 'button', tabindex: 0 });
    chip.append(element('title', {}, 'Remove this search'));
    chip.append(element('rect', { width: size, height: 18, rx: 4, fill: search.colour, stroke: '#d1d9e0' }));
    chip.append(element('text', { x: size / 2, y: 13, 'text-anchor': 'middle', 'font-size': 11, fill: '#1f2328' }, text));
    chip.addEventListener('click', () => go({ pinned: state.pinned.filter((_, other) => other !== k) }));
    return chip;
  }));
}

// Keeps the search in the box, which is empty then.
function keepSearch() {
  const { pattern, pinned } = state;
  if (!pattern || pinned.length >= MOST) return;
  input.value = '';
  go({ pattern: '', pinned: [...pinned, pattern] });
  input.focus();
}

// To the next box that matches, or to the one before.
function walkMatches(step) {
  finishDrawing();
  const hits = cells.filter(cell => cell.mark);
  if (!hits.length) {
    if (searches.length) hint('No match in this view.');
    return;
  }
  const here = selected ? selected.at : step > 0 ? -1 : cells.length;
  const next = step > 0
    ? hits.find(cell => cell.at > here) || hits[0]
    : hits.filter(cell => cell.at < here).pop() || hits[hits.length - 1];
  select(next);
}
