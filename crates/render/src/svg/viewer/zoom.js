// Hover and zoom.

function tell(text, quiet) {
  details.textContent = text;
  details.setAttribute('class', quiet ? '' : 'shown');
  details.setAttribute('fill', quiet ? '#59636e' : '#1f2328');
}

function describe(cell) {
  const of = [], zoomed = view.up >= 0, above = parent[cell.node];
  if (zoomed && !cell.faded) of.push(share(cell.weight, view.span) + ' of view');
  if (above > 0) of.push(share(cell.weight, total[above]) + ' of parent');
  let numbers = `total ${share(cell.weight, total[0])}`;
  if (of.length) numbers += ` (${of.join(', ')})`;
  if (!cell.thin) numbers += `, self ${share(selfOf[cell.node], total[0])}`;
  numbers += `, ${amount(cell.weight)}`;
  const frameCount = cell.last - cell.node;
  const name = cell.thin
    ? `${group(frameCount)} ${frameCount === 1 ? 'frame' : 'frames'} too thin to draw`
    : data.names[label[cell.node]];
  const room = (width - 2 * data.margin) * 1000 / data.fontSize - textWidth(' — ' + numbers);
  return (fit(name, room) || cutEnd(name, room)) + ' — ' + numbers;
}

function cellAt(target) {
  for (let at = target; at && at !== root; at = at.parentNode) {
    if (cellOf.has(at)) return cellOf.get(at);
  }
  return null;
}

function zoom(to) {
  const whole = view.up < 0;
  if (whole && to.up < 0) return;
  if (whole) {
    kept = { width, cells, rows, boxes: document.createDocumentFragment() };
    while (frames.firstChild) kept.boxes.append(frames.firstChild);
  }
  view = to;
  draw();
  placeHeader();
  tell(HINT, true);
}
