// The start, once the tree is there.

function begin() {
  const wanted = addressWorks ? stateOf(location) : INITIAL;
  icicle = INITIAL.icicle;
  arrange(INITIAL);
  if (standalone && !wanted.zoom) wanted.zoom = classicZoom(location);
  addControls();
  view = wholeView();
  cells = layout(view, unitsOf(width));
  rows = staticRows = cells.reduce((most, cell) => Math.max(most, depth[cell.node] + 1), 1);
  root.setAttribute('width', '100%');
  root.removeAttribute('viewBox');
  width = Math.max(200, Math.floor(root.getBoundingClientRect().width)) || width;
  if (width === data.width && cells.length === frames.children.length) adopt();
  else draw(view);
  placeFooter();
  hint();
  placeHeader();
  listen();
  apply(wanted);
  pin();
  // A tall graph opens at its root, not at its spires.
  if (standalone && !icicle && root.getBoundingClientRect().height > window.innerHeight) {
    window.scrollTo(0, document.documentElement.scrollHeight);
  }
  if (standalone) publish();
  root.setAttribute('data-ready', 'true');
}

// The names that flamegraph.pl's pages have.
function publish() {
  window.zoom = box => {
    const cell = cellAt(box);
    if (cell) zoomTo(cell);
  };
  window.unzoom = reset;
  window.search = pattern => go({ pattern: String(pattern || '') });
}

function fail(error) {
  tell('The data of this graph cannot be read; the picture is all there is.', true);
  root.setAttribute('data-ready', 'false');
  throw error;
}

try {
  load(begin, fail);
} catch (error) {
  fail(error);
}
