// The line of details.

function tell(text, quiet) {
  details.textContent = text;
  details.setAttribute('class', quiet ? '' : 'shown');
  details.setAttribute('fill', quiet ? '#59636e' : '#1f2328');
}

const filtered = () => state.hide.length + state.only.length > 0;

// What stands there while nothing is pointed at.
function hint(notice) {
  const room = Math.floor((width - 2 * data.margin) * 1000 / data.uiSize);
  let text = notice || 'Hover for details, click to zoom, Ctrl-F to search, ? for all keys.';
  if (!notice && filtered() && !cells.length) text = 'Nothing is left; u undoes, Esc shows all.';
  else if (!notice && filtered()) {
    text = `${share(count ? total[0] : ZERO, everything)} of all is shown; u undoes, Esc shows all.`;
  }
  tell(cutEnd(text, room), true);
}

function describe(cell) {
  const of = [], above = parent[cell.node];
  if (view.up >= 0 && !cell.faded) of.push(share(cell.weight, view.span) + ' of view');
  if (above > 0) of.push(share(cell.weight, total[above]) + ' of parent');
  if (filtered()) of.push(share(cell.weight, everything) + ' of everything');
  let numbers = `total ${share(cell.weight, total[0])}`;
  if (of.length) numbers += ` (${of.join(', ')})`;
  if (!cell.thin) numbers += `, self ${share(selfOf[cell.node], total[0])}`;
  numbers += `, ${amount(cell.weight)}`;
  if (!cell.thin) numbers += change(cell.node);
  const name = cell.thin
    ? `${framesText(cell.last - cell.node)} too thin to draw`
    : nameOf(cell.node);
  const kind = cell.thin || !data.nameType ? '' : data.nameType + ' ';
  const room = (width - 2 * data.margin) * 1000 / data.uiSize - textWidth(kind + ' — ' + numbers);
  return kind + (fit(name, room) || cutEnd(name, room)) + ' — ' + numbers;
}

function cellAt(target) {
  for (let at = target; at && at !== root; at = at.parentNode) {
    if (cellOf.has(at)) return cellOf.get(at);
  }
  return null;
}
