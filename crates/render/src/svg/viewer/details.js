// What is said of a box: on phones its name and its numbers have lines of their own.

// From all there is to say about a box to the least, for the room there is.
function numbersOf(cell) {
  const of = [], above = parent[cell.node];
  if (view.up >= 0 && !cell.faded && rootOf(cell.node) === rootOf(view.first)) of.push(share(cell.weight, view.span) + ' of view');
  if (isAround() && above >= 0) of.push(`${share(cell.weight, total[0])} of ${nameOf(0)}`);
  else if (above > 0) of.push(share(cell.weight, total[above]) + ' of parent');
  if (filtered()) of.push(share(cell.weight, everything) + ' of everything');
  const least = 'total ' + share(cell.weight, whole), most = of.length ? `${least} (${of.join(', ')})` : least;
  // What a caller does itself is not part of what it calls.
  let rest = cell.thin || isCaller(cell) ? '' : `, self ${share(selfOf[cell.node], whole)}`;
  rest += `, ${amount(cell.weight)}`;
  if (!cell.thin) rest += change(cell.node);
  return [most + rest, least + rest, least];
}

// The name with the longest of some texts that leaves it enough room, and further lines.
function tellOf(cell) {
  const name = cell.thin ? runText(cell) + (cell.tower ? '' : ' too thin to draw') : nameOf(cell.node);
  const kind = cell.thin || !data.nameType || phone() ? '' : data.nameType + ' ';
  const [texts, ...rest] = diff ? changesOf(cell) : [numbersOf(cell)];
  const room = lineRoom(taken), fitted = room => fit(name, Math.max(room, 0)) || cutEnd(name, Math.max(room, 0));
  if (phone()) {
    const text = texts.find(text => textWidth(text) <= lineRoom(0)) || texts[texts.length - 1];
    tell(fitted(room), false, text, ...rest);
    return;
  }
  const least = Math.min(textWidth(name), 12000), left = text => room - textWidth(`${kind} — ${text}`);
  const text = texts.find(text => left(text) >= least) || texts[texts.length - 1];
  tell(`${kind}${fitted(left(text))} — ${text}`, false, ...rest);
}
