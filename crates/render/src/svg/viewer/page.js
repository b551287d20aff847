// The viewer: hover, zoom, search and more on the whole tree, which rides in #flame-data. The
// files of this directory are put together into one function, in the order of script.rs.
//
// Everything is looked up below this script's own <svg>, so several graphs can share a page. Text
// reaches the document through textContent and attributes only, never as markup. The layout, the
// labels and the numbers follow the same steps as the writer (layout.rs, label.rs, lines.rs,
// amount.rs); a browser test compares what both draw.

const SVG = 'http://www.w3.org/2000/svg';
const HTML = 'http://www.w3.org/1999/xhtml';
const root = document.currentScript ? document.currentScript.closest('svg') : document.documentElement;
const byId = id => root.querySelector('#' + id);
// In a document of its own the graph has the keys, the address and the window to itself.
const standalone = root === document.documentElement;
const data = JSON.parse(byId('flame-data').textContent);
// What is known of the two profiles of a differential graph.
const diff = data.diff;
const details = byId('details'), matched = byId('matched');
let frames = byId('frames');
// Whether fingers are what there is to point with.
const coarse = window.matchMedia('(pointer: coarse)').matches;

function element(name, attributes, text) {
  const made = document.createElementNS(SVG, name);
  for (const key in attributes) made.setAttribute(key, attributes[key]);
  if (text !== undefined) made.textContent = text;
  return made;
}

function show(what, shown) {
  if (shown) what.removeAttribute('display'); else what.setAttribute('display', 'none');
}
