// A list of things to do: what can be done with a box, and with the graph.

let panel = null;
let beforePanel = null;

// `rows` are `[text, key, act]`; a row without `act` only tells of a key.
function openPanel(rows, x, y, name) {
  closePanel();
  const em = data.uiSize / 1000, widest = texts => Math.max(...texts.map(text => textWidth(text))) * em;
  const keyWidth = widest(rows.map(row => row[1])), high = coarse ? 40 : 22;
  const natural = Math.ceil(widest(rows.map(row => row[0])) + keyWidth + 48);
  // In a narrow window the keys are there, and as much of the words as fits.
  const size = Math.min(natural, width - 4), room = (size - keyWidth - 46) / em;
  const height = rows.length * high + 12;
  panel = element('g', { id: 'panel', role: 'menu', 'aria-label': name });
  panel.append(element('rect', { width: size, height, rx: 6, fill: '#fff', stroke: '#8c959f', class: 'sheet' }));
  rows.forEach(([text, key, act], k) => {
    const row = element('g', { class: act ? 'row act' : 'row', transform: `translate(4 ${6 + k * high})` });
    row.append(element('rect', { width: size - 8, height: high, rx: 4, fill: '#fff' }));
    row.append(element('text', { x: 8, y: high / 2 + 4 }, cutEnd(text, room)));
    row.append(element('text', { x: size - 16, y: high / 2 + 4, 'text-anchor': 'end', fill: '#59636e' }, key));
    if (act) {
      row.setAttribute('role', 'menuitem');
      row.setAttribute('tabindex', '-1');
      row.addEventListener('click', () => {
        closePanel();
        act();
      });
    }
    panel.append(row);
  });
  const left = Math.max(0, Math.min(x, width - size - 2));
  const above = standalone ? window.scrollY : 0;
  const lowest = standalone ? Math.max(above, above + window.innerHeight - height - 2) : Infinity;
  const top = Math.max(0, Math.min(y, lowest));
  panel.setAttribute('transform', `translate(${left} ${top})`);
  // A low graph would cut it.
  root.setAttribute('overflow', 'visible');
  if (standalone) root.setAttribute('height', Math.max(+root.getAttribute('height'), top + height + 4));
  root.append(panel);
  beforePanel = document.activeElement;
  stepInPanel(1);
}

function closePanel() {
  if (!panel) return;
  panel.remove();
  panel = null;
  root.removeAttribute('overflow');
  resizeTo(rows);
  if (beforePanel && beforePanel.focus && root.contains(beforePanel)) beforePanel.focus({ preventScroll: true });
}

function stepInPanel(step) {
  const rows = Array.from(panel.querySelectorAll('.act'));
  const at = rows.indexOf(document.activeElement);
  const next = rows[at < 0 ? 0 : (at + step + rows.length) % rows.length];
  if (next) next.focus({ preventScroll: true });
}
