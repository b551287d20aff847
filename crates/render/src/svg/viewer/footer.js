// Legend and footer, and how high all of it is.

// Extra lines of the legend and of the status; the lower edge of the boxes; the height of the head,
// and of everything.
let legendExtra = 0, statusExtra = 0, bottom = 0, headHigh = data.top, high = +root.getAttribute('height');

function placeFooter() {
  const room = Math.floor((width - 2 * data.margin) * 1000 / data.footerSize);
  const lines = data.footer.flatMap(line => wrap(line, room));
  placeLegend();
  byId('footer').replaceChildren(...lines.map((line, k) =>
    element('text', { x: data.margin, y: data.footerY + k * data.footerLine }, line)));
  resizeTo(rows);
}

// The entries of the legend, in as many lines as it takes.
function placeLegend() {
  const entries = byId('legend').children, right = width - data.margin;
  let left = data.margin, extra = 0;
  for (let k = 0; k + 1 < entries.length; k += 2) {
    const mark = entries[k], text = entries[k + 1];
    const size = 16 + Math.floor(textWidth(text.textContent) * data.footerSize / 1000);
    if (left + size > right && left > data.margin) {
      left = data.margin;
      extra += data.footerLine;
    }
    mark.setAttribute('x', left);
    text.setAttribute('x', left + 16);
    for (const part of [mark, text]) move(part, extra);
    left += size + 18;
  }
  legendExtra = extra;
  move(byId('footer'), extra);
}

function resizeTo(rows) {
  bottom = bottomOf(rows);
  setHeight();
}

function setHeight() {
  const lines = byId('footer').children.length;
  high = bottom + statusExtra + data.footerY + legendExtra + lines * data.footerLine;
  root.setAttribute('height', moved ? window.innerHeight : high);
  if (moved) root.setAttribute('viewBox', `0 ${moved} ${width} ${window.innerHeight}`);
  move(byId('foot'), bottom + statusExtra);
}

// Makes room for the head. The boxes stay where they are in their group, which moves.
function setHead(high) {
  const by = high - headHigh;
  if (!by) return;
  headHigh = high;
  byId('head').querySelector('.bar').setAttribute('height', high - 6);
  for (const part of root.querySelectorAll('.frames, #strips, #heads')) move(part, high - data.top);
  bottom += by;
  setHeight();
  if (!icicle) settleSoon(by);
}

function setLines(number) {
  const extra = (number - (diff ? 2 : 1)) * LINE;
  if (extra === statusExtra) return;
  statusExtra = extra;
  byId('status').querySelector('.bar').setAttribute('height', data.status - 1 + extra);
  setHeight();
  settleSoon(0);
}
