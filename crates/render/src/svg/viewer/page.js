// The viewer: hover, zoom and search on the whole tree, which rides in #flame-data. The files of
// this directory are put together into one function, in the order that svg/document.rs gives.
//
// Everything is looked up below this script's own <svg>, so several graphs can share a page. Text
// reaches the document through textContent and attributes only, never as markup. The layout, the
// labels and the numbers follow the same steps as the writer (layout.rs, label.rs, lines.rs,
// amount.rs); a browser test compares what both draw.

const SVG = 'http://www.w3.org/2000/svg';
const HTML = 'http://www.w3.org/1999/xhtml';
const root = document.currentScript ? document.currentScript.closest('svg') : document.documentElement;
const byId = id => root.querySelector('#' + id);
const standalone = root === document.documentElement;
const data = JSON.parse(byId('flame-data').textContent);
const frames = byId('frames'), details = byId('details'), matched = byId('matched');
const HINT = 'Hover for details, click to zoom, Ctrl-F to search.';
