// The start, once the tree is there.

// Measuring lays out the page an additional time, so that is done only where all is drawn anew
// anyway and a scroll bar may take a part of the width.
function windowWidth() {
  const whole = Math.floor(window.innerWidth), scrolls = +root.getAttribute('height') > window.innerHeight;
  return whole !== data.width && scrolls ? root.clientWidth || whole : whole;
}

function begin() {
  arrange(INITIAL);
  view = wholeView();
  if (standalone && data.fluid) width = Math.max(200, windowWidth()) || width;
  cells = layout(view, unitsOf(width));
  rows = staticRows = cells.reduce((most, cell) => Math.max(most, depth[cell.node] + 1), 1);
  bottom = bottomOf(rows);
  icicle = INITIAL.icicle;
  const drawn = width === data.width && cells.length === frames.children.length;
  if (drawn) adopt(); else drawCells();
  if (data.fluid) root.setAttribute('width', '100%');
  root.removeAttribute('viewBox');
  addControls();
  if (!drawn) {
    drawAround();
    placeFooter();
  }
  hint();
  placeHeader();
  listen();
  const wanted = standalone ? stateOf(location) : INITIAL;
  if (standalone && !wanted.zoom) wanted.zoom = classicZoom(location);
  apply(wanted);
  if (standalone) publish();
  requestAnimationFrame(() => {
    follow();
    // A tall graph opens at its root, not at its spires.
    const height = +root.getAttribute('height');
    if (standalone && !icicle && height > window.innerHeight) window.scrollTo(0, height);
    settle();
    whenIdle(() => {
      describeBoxes();
      warmUp();
    });
  });
  root.setAttribute('data-ready', 'true');
}

// What a script does for the first time takes it several times as long, and the first zoom is what
// everybody does: draws some boxes of it for nobody.
function warmUp() {
  const cell = cells.find(cell => cell.node && !cell.thin);
  if (!cell) return;
  const run = find(pathOfRun(cell.node, cell.last));
  layout(viewOf(run), unitsOf(width)).slice(0, 100).forEach(drawCell);
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
