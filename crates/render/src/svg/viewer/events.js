// Mouse, keys and window.

let pointerInside = false;

// In a page of its own the graph takes the keys; among other things, only what is meant for it.
function takesKeys() {
  return standalone || pointerInside || root.contains(document.activeElement);
}

function onKey(event) {
  if (!takesKeys()) return;
  const control = event.ctrlKey || event.metaKey;
  if ((control && event.key === 'f') || event.key === 'F3') {
    event.preventDefault();
    input.focus();
    input.select();
  } else if (control && event.key === 'i') {
    event.preventDefault();
    setIgnoreCase(!ignoreCase);
  } else if (event.key === 'Escape') {
    if (input.value) resetSearch();
    else if (view.up >= 0) zoom(wholeView());
    else input.blur();
  } else if ((event.key === 'Enter' || event.key === ' ') && event.target.id in button) {
    event.preventDefault();
    event.target.dispatchEvent(new MouseEvent('click'));
  }
}

function listen() {
  frames.addEventListener('click', event => {
    const cell = cellAt(event.target);
    if (cell) zoom(viewOf(cell));
  });
  frames.addEventListener('mouseover', event => {
    const cell = cellAt(event.target);
    if (cell) tell(describe(cell));
  });
  frames.addEventListener('mouseleave', () => tell(HINT, true));
  button.unzoom.addEventListener('click', () => zoom(wholeView()));
  button.ignorecase.addEventListener('click', () => setIgnoreCase(!ignoreCase));
  input.addEventListener('input', () => search(input.value));
  root.addEventListener('mouseenter', () => { pointerInside = true; });
  root.addEventListener('mouseleave', () => { pointerInside = false; });
  window.addEventListener('keydown', onKey);
  window.addEventListener('scroll', pin, { passive: true });
  window.addEventListener('resize', follow);
  if (window.ResizeObserver) new ResizeObserver(follow).observe(root);
}

// Follows the width of the window, or of whatever holds the graph.
function follow() {
  const found = Math.floor(root.getBoundingClientRect().width);
  if (found >= 200 && found !== width) {
    width = found;
    draw();
    placeFooter();
  }
  placeHeader();
  pin();
}

function begin() {
  decodeTree();
  view = wholeView();
  cells = layout(view, unitsOf(width));
  rows = staticRows = cells.reduce((most, cell) => Math.max(most, depth[cell.node] + 1), 1);
  if (cells.length === frames.children.length) adopt(); else draw();
  inputBox.append(input);
  byId('search').append(inputBox);
  show(byId('search'), true);
  show(button.ignorecase, true);
  tell(HINT, true);
  root.setAttribute('width', '100%');
  root.removeAttribute('viewBox');
  listen();
  follow();
  // A tall graph opens at its root, not at its spires.
  if (standalone && root.getBoundingClientRect().height > window.innerHeight) {
    window.scrollTo(0, document.documentElement.scrollHeight);
  }
}

begin();
