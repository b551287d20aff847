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
  if (standalone && turned) toRoot();
  else if (standalone && shift) window.scrollBy(0, shift);
  shift = 0;
  turned = false;
  pin();
}

// A tall graph opens at its root, not at its spires.
function toRoot() {
  const middle = isAround() ? headHigh + panes[0].rows * data.row - window.innerHeight / 2 : 0;
  window.scrollTo(0, isAround() ? middle : icicle ? 0 : +root.getAttribute('height'));
}

// Keeps the head, the headings and the details in sight while a graph taller than the window scrolls.
function pin() {
  let head = 0, status = bottom;
  if (standalone) {
    head = Math.max(0, Math.min(window.scrollY, bottom - headHigh));
    status = Math.max(headHigh, Math.min(bottom, window.scrollY + window.innerHeight - data.status - statusExtra));
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
