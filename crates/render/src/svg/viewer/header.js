// What stands around the boxes: title, controls, footer.

const button = { unzoom: byId('unzoom'), ignorecase: byId('ignorecase') };
const inputBox = element('foreignObject', { y: 9, width: 190, height: 26 });
const input = document.createElementNS(HTML, 'input');
input.setAttribute('class', 'flame-input');
input.setAttribute('type', 'text');
input.setAttribute('spellcheck', 'false');
input.setAttribute('autocomplete', 'off');
input.setAttribute('placeholder', 'Search (regex)');
input.setAttribute('aria-label', 'Search functions by regular expression');

function show(what, shown) {
  if (shown) what.removeAttribute('display'); else what.setAttribute('display', 'none');
}

function placeHeader() {
  const right = width - data.margin, zoomed = view.up >= 0;
  const inputWidth = Math.max(90, Math.min(190, width - 260));
  const searchLeft = right - 34 - inputWidth;
  inputBox.setAttribute('x', searchLeft);
  inputBox.setAttribute('width', inputWidth);
  button.ignorecase.setAttribute('transform', `translate(${right - 28} 9)`);
  button.unzoom.setAttribute('transform', `translate(${searchLeft - 96} 9)`);
  matched.setAttribute('x', right);
  show(button.unzoom, zoomed);
  const titleRoom = searchLeft - (zoomed ? 96 : 0) - 2 * data.margin;
  const milliEm = pixels => Math.floor(Math.max(pixels, 0) * 1000);
  const titleEm = milliEm(titleRoom) / data.titleSize * 100 / data.boldPercent;
  byId('title').textContent = cutEnd(data.title, titleEm);
  const taken = textWidth(matched.textContent) * data.fontSize / 1000;
  const room = right - data.margin - (taken ? taken + 20 : 0);
  byId('subtitle').textContent = cutEnd(data.subtitle, milliEm(room) / data.fontSize);
}

function placeFooter() {
  const room = Math.floor((width - 2 * data.margin) * 1000 / data.footerSize);
  const lines = data.footer.flatMap(line => wrap(line, room));
  byId('footer').replaceChildren(...lines.map((line, k) =>
    element('text', { x: data.margin, y: data.footerY + k * data.footerLine }, line)));
  resizeTo(rows);
}

// Keeps header and details in sight while a graph taller than the window scrolls.
function pin() {
  const bottom = data.top + rows * data.row;
  let head = 0, status = bottom;
  if (standalone) {
    head = Math.max(0, Math.min(window.scrollY, bottom - data.top));
    status = Math.max(data.top, Math.min(bottom, window.scrollY + window.innerHeight - 30));
  }
  const move = (id, y, home) => {
    byId(id).setAttribute('transform', `translate(0 ${y})`);
    byId(id).setAttribute('class', y === home ? '' : 'pinned');
  };
  move('head', head, 0);
  move('status', status, bottom);
}
