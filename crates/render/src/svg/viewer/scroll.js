// Scrolling, and what stays in sight then.

function move(what, by) {
  if (by) what.setAttribute('transform', `translate(0 ${by})`); else what.removeAttribute('transform');
}

// Reading the window's position makes the browser lay out the page: once a frame, not more.
let settling = 0, shift = 0, turned = false;
function settleSoon(by) {
  shift += by;
  if (!settling) settling = requestAnimationFrame(settle);
}

function settle() {
  settling = 0;
  if (standalone && turned) window.scrollTo(0, rootAt());
  else if (standalone && shift) window.scrollBy(0, shift);
  shift = 0;
  turned = false;
  pin();
}

// Where the root is in sight, or the function between its callers and callees.
function rootAt() {
  if (isAround()) return headHigh + panes[0].rows * data.row - window.innerHeight / 2;
  return icicle ? 0 : high - window.innerHeight;
}

// A tall graph opens at its root, not at its spires. It is not scrolled there but moved: what takes
// a picture of a page without showing it takes it from the upper edge of the page, and of a page
// that is scrolled that is blank. Whoever does anything finds the page scrolled.
let moved = 0;
const scrolled = () => moved || window.scrollY;
const COMING = ['pointermove', 'pointerdown', 'wheel', 'keydown', 'focusin', 'beforeprint'];

function openAtRoot() {
  const at = Math.floor(Math.min(rootAt(), high - window.innerHeight));
  if (at <= 0) {
    scrollInstead();
    return;
  }
  // A finger that is put down scrolls at once.
  if (coarse) window.scrollTo(0, at);
  else {
    moved = at;
    for (const type of COMING) window.addEventListener(type, scrollInstead, { capture: true, once: true });
    // The room of the scroll bar is taken from the start.
    root.style.overflowY = 'scroll';
    setHeight();
  }
  pin();
}

function scrollInstead() {
  if (!moved) return;
  const at = moved;
  moved = 0;
  root.style.overflowY = '';
  root.removeAttribute('viewBox');
  setHeight();
  window.scrollTo(0, at);
}

// Keeps the head, the headings and the details in sight while a graph taller than the window scrolls.
function pin() {
  let head = 0, status = bottom;
  if (standalone) {
    head = Math.max(0, Math.min(scrolled(), bottom - headHigh));
    status = Math.max(headHigh, Math.min(bottom, scrolled() + window.innerHeight - data.status - statusExtra));
  }
  const place = (what, y, home) => {
    what.setAttribute('transform', `translate(0 ${y})`);
    what.setAttribute('class', y === home ? '' : 'pinned');
  };
  place(byId('head'), head, 0);
  place(byId('status'), status, bottom);
  if (!diff) return;
  // Known from what is drawn, which may be all there is yet.
  const headings = Array.from(byId('heads').children), tops = headings.map(heading => +heading.firstChild.getAttribute('y') + 6);
  headings.forEach((heading, at) => {
    const next = tops.find(top => top > tops[at]) || bottom - headHigh + data.top;
    const most = next - tops[at] - data.paneHead - data.row;
    place(heading, Math.max(0, Math.min(head + data.top - tops[at], most)), 0);
  });
}
