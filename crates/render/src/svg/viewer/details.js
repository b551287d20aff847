// The line of details.

function tell(text, quiet, more = '') {
  details.textContent = text;
  if (diff) byId('more').textContent = more;
  details.setAttribute('class', quiet ? '' : 'shown');
  details.setAttribute('fill', quiet ? '#59636e' : '#1f2328');
}

const filtered = () => state.hide.length + state.only.length > 0;

// What stands there while nothing is pointed at.
function hint(notice) {
  const room = Math.floor((width - 2 * data.margin) * 1000 / data.uiSize);
  const more = diff ? ' d for other widths, t for other colours,' : '';
  let text = notice || `Hover for details, click to zoom,${more} Ctrl-F to search, ? for all keys.`;
  if (!notice && filtered() && !cells.length) text = 'Nothing is left; u undoes, Esc shows all.';
  else if (!notice && filtered()) {
    text = `${share(count ? total[0] : ZERO, everything)} of all is shown; u undoes, Esc shows all.`;
  }
  tell(cutEnd(text, room), true);
}

// From all there is to say about a box to the least, for the room there is.
function numbersOf(cell) {
  const of = [], above = parent[cell.node];
  if (view.up >= 0 && !cell.faded) of.push(share(cell.weight, view.span) + ' of view');
  if (above > 0) of.push(share(cell.weight, total[above]) + ' of parent');
  if (filtered()) of.push(share(cell.weight, everything) + ' of everything');
  const least = 'total ' + share(cell.weight, total[0]), most = of.length ? `${least} (${of.join(', ')})` : least;
  let rest = cell.thin ? '' : `, self ${share(selfOf[cell.node], total[0])}`;
  rest += `, ${amount(cell.weight)}`;
  if (!cell.thin) rest += change(cell.node);
  return [most + rest, least + rest, least];
}

function tellOf(cell) {
  if (diff) tellChange(cell); else tell(describe(cell));
}

function describe(cell) {
  const name = cell.thin
    ? `${framesText(cell.last - cell.node)} too thin to draw`
    : nameOf(cell.node);
  const kind = cell.thin || !data.nameType ? '' : data.nameType + ' ';
  const room = (width - 2 * data.margin) * 1000 / data.uiSize;
  const numbers = numbersOf(cell), least = Math.min(textWidth(name), 12000);
  const left = text => room - textWidth(`${kind} — ${text}`);
  const text = numbers.find(text => left(text) >= least) || numbers[2];
  const shown = fit(name, Math.max(left(text), 0)) || cutEnd(name, Math.max(left(text), 0));
  return cutEnd(`${kind}${shown} — ${text}`, room);
}

function cellAt(target) {
  for (let at = target; at && at !== root; at = at.parentNode) {
    if (cellOf.has(at)) return cellOf.get(at);
  }
  return null;
}
