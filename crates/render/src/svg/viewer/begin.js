// The start, once the tree is there.

// Whether the boxes of the file are as wide as the window. Other ways to ask for the window's size
// lay out the page, boxes and all, before what follows changes it.
const fitsWindow = () => !standalone || !data.fluid || window.matchMedia(`(width: ${data.width}px)`).matches;

// Measuring is cheap while the boxes, which are drawn anew for this width, are out of the way. A
// scroll bar may take a part of it.
function windowWidth() {
  show(frames, false);
  const whole = Math.floor(window.innerWidth), scrolls = +root.getAttribute('height') > window.innerHeight;
  const found = whole !== data.width && scrolls ? root.clientWidth || whole : whole;
  show(frames, true);
  return Math.max(200, found) || width;
}

function begin() {
  const fits = fitsWindow(), asked = standalone && location.hash + location.search;
  view = wholeView();
  bottom = parseFloat(byId('foot').getAttribute('transform').split(' ')[1]);
  icicle = INITIAL.icicle;
  if (!fits) width = windowWidth();
  if (data.fluid) root.setAttribute('width', '100%');
  root.removeAttribute('viewBox');
  addControls();
  waking = takeOver;
  if (!fits || asked || data.around) wake();
  hint();
  listen();
  const wanted = standalone ? stateOf(location) : INITIAL;
  if (asked && !wanted.zoom) wanted.zoom = classicZoom(location);
  apply(wanted);
  if (standalone) publish();
  requestAnimationFrame(() => {
    follow();
    settle();
    if (standalone) openAtRoot();
    whenIdle(() => {
      wake();
      describeBoxes();
      warmUp();
      if (grown === base) readOrder();
    });
  });
  root.setAttribute('data-ready', 'true');
}

// Nobody needs to know which box is which frame before something happens to one. So that waits
// until nothing happens, or for the first event.
let waking = null;
const WAKING = ['mouseover', 'mousedown', 'click', 'contextmenu', 'touchstart', 'focusin', 'input'];

function wake() {
  const act = waking;
  waking = null;
  if (!act) return;
  try {
    act();
  } catch (error) {
    fail(error);
  }
}

// Finds in the tree what the file shows.
function takeOver() {
  arrange({ ...INITIAL, around: '' });
  view = wholeView();
  cells = layout(view, unitsOf(width));
  rows = staticRows = rowsOf(cells);
  bottom = bottomOf(rows);
  if (width === data.width && cells.length === frames.children.length) {
    adopt();
    return;
  }
  drawCells();
  drawAround();
  placeFooter();
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
    wake();
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
