// The lines below the graph: what is pointed at, and what holds all the time: what is left out,
// which match is looked at, and how much matches.

const LINE = 16, FIRST_LINE = 20;
// What is left out, and which match.
const standing = element('text', { id: 'standing', 'text-anchor': 'end', fill: '#59636e' });
const chips = element('g', { id: 'searches' });
let more = byId('more');
// Room that what holds all the time takes of the first line, and how many lines there are.
let taken = 0, lines = diff ? 2 : 1;

const filtered = () => state.hide.length + state.only.length > 0;
const detailLines = () => (diff ? 2 : 1) + (phone() ? 1 : 0);
const lineRoom = taken => Math.floor((width - 2 * data.margin - taken) * 1000 / data.uiSize);

function tell(text, quiet, ...rest) {
  details.textContent = cutEnd(text, lineRoom(taken));
  if (!more && rest.length) details.after(more = element('text', { id: 'more' }));
  if (more) {
    const parts = rest.map((line, k) =>
      element('tspan', { x: data.margin, y: FIRST_LINE + (k + 1) * LINE }, cutEnd(line, lineRoom(0))));
    more.replaceChildren(...parts);
  }
  for (const text of more ? [details, more] : [details]) {
    text.setAttribute('class', quiet ? '' : 'shown');
    text.setAttribute('fill', quiet ? '#59636e' : '#1f2328');
  }
}

// What stands there while nothing is pointed at.
function hint(notice) {
  if (notice || filtered() && !cells.length) tell(notice || 'Nothing is left.', true);
  else if (!coarse) tell('Hover for details, click to zoom, right-click for more, ? for all keys.', true);
  else if (!phone()) tell('Tap a box for its numbers, again to zoom, hold it for more.', true);
  else tell('Tap a box for its numbers, again to zoom,', true, 'hold it for more.');
}

function standingText() {
  const hits = cells.filter(cell => cell.mark), at = selected ? hits.indexOf(selected) : -1;
  const found = [];
  if (isAround()) found.push(`${cutEnd(nameOf(0), 20000)}: ${share(total[0], whole)}, callers above, callees below`);
  if (filtered()) found.push(`${share(whole, everything)} of all is shown`);
  if (searches.length && hits.length) found.push(at < 0 ? `${group(hits.length)} marked` : `${group(at + 1)} of ${group(hits.length)}`);
  return found.join(' · ');
}

// From the right, in the first line where enough of that is left, else below the details.
function placeStatus() {
  standing.textContent = standingText();
  for (const key of ['previous', 'next']) button[key].setAttribute('class', cells.some(cell => cell.mark) ? 'button' : 'button idle');
  const items = [...(matched.textContent ? [matched] : []), ...(standing.textContent ? [standing] : []), ...chips.children];
  const sizes = items.map(item => item.localName === 'g' ? sizeOf(item) : textWidth(item.textContent) * data.uiSize / 1000);
  const whole = sizes.reduce((sum, size) => sum + size + LINE, 0), right = width - data.margin;
  const beside = !phone() && right - whole >= 420, before = taken;
  let line = beside ? 0 : detailLines(), left = right;
  items.forEach((item, k) => {
    if (left < right && left - sizes[k] < data.margin) {
      line++;
      left = right;
    }
    const y = FIRST_LINE + line * LINE;
    if (item.localName === 'g') item.setAttribute('transform', `translate(${left - sizes[k]} ${y - 13})`);
    else {
      item.setAttribute('x', left);
      item.setAttribute('y', y);
    }
    left -= sizes[k] + LINE;
  });
  taken = beside ? whole : 0;
  setLines(Math.max(detailLines(), items.length ? line + 1 : 0));
  if (taken !== before) showDetails();
}

// What is pointed at, or else what is selected.
function showDetails() {
  if (hovered || selected) tellOf(hovered || selected);
  else if (!panel) hint();
}

function cellAt(target) {
  for (let at = target; at && at !== root; at = at.parentNode) {
    if (cellOf.has(at)) return cellOf.get(at);
  }
  return null;
}
