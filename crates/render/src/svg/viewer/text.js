// Text in the room there is, as label.rs and lines.rs fit it.

function charWidth(c, uniform) {
  const code = c.codePointAt(0);
  if (uniform) return code >= data.doubleFrom ? 2 * uniform : uniform;
  const ascii = data.ascii[code - 32];
  return ascii !== undefined ? ascii : code >= data.wideFrom ? data.wide : data.other;
}

function textWidth(text, uniform) {
  let width = 0;
  for (const c of text) width += charWidth(c, uniform);
  return width;
}

// `uniform` is the width of every character where that was chosen, else 0.
function fit(name, max, uniform) {
  if (textWidth(name, uniform) <= max) return name;
  if (data.cutRight) return cutRight(name, max, uniform);
  const short = stripArguments(name);
  if (textWidth(short, uniform) <= max) return short;
  let last = short;
  for (const tail of tails(short)) {
    if (textWidth(tail, uniform) <= max) return tail;
    last = tail;
  }
  return cutMiddle(last, max, uniform);
}

function cutRight(name, max, uniform) {
  const chars = Array.from(name);
  let left = max - charWidth('…', uniform), kept = 0;
  while (kept < chars.length && left >= charWidth(chars[kept], uniform)) {
    left -= charWidth(chars[kept++], uniform);
  }
  return left < 0 || kept < 3 ? null : chars.slice(0, kept).join('') + '…';
}

function cutEnd(name, max) {
  if (textWidth(name) <= max) return name;
  let left = max - data.wide, cut = '';
  for (const c of name) {
    left -= charWidth(c);
    if (left < 0) break;
    cut += c;
  }
  return cut + '…';
}

function wrap(text, max) {
  const lines = [];
  for (const whole of text.split(' ').filter(Boolean)) {
    const word = cutEnd(whole, max), line = lines[lines.length - 1];
    if (line !== undefined && textWidth(line + ' ' + word) <= max) lines[lines.length - 1] += ' ' + word;
    else lines.push(word);
  }
  return lines;
}

const stripped = new Map();
function stripArguments(name) {
  let short = stripped.get(name);
  if (short === undefined) stripped.set(name, short = stripOnce(name));
  return short;
}

function stripOnce(name) {
  if (name[0] === '[') return name;
  let out = '', skipping = 0, opened = 0, before = ' ';
  for (let i = 0; i < name.length; i++) {
    const c = name[i];
    if (skipping > 0) {
      if (c === '<' || c === '(') skipping++;
      else if ((c === '>' && before !== '-') || c === ')') skipping--;
      before = c;
      continue;
    }
    const whole = ['(anonymous namespace)', 'operator()', 'decltype(auto)'].find(w => name.startsWith(w, i));
    if (whole) {
      out += whole;
      i += whole.length - 1;
      before = ')';
      continue;
    }
    if (c === '<' && (before === '.' || out.endsWith('operator'))) out += c;
    else if (c === '<' && before === '<' && out.endsWith('operator<')) out += c;
    else if (c === '<' && !out && isQualified(name.slice(i))) opened++;
    // A name of its own: `<module>`, `block in <main>`, `a.py:<lambda>`.
    else if (c === '<' && (!out || /[A-Za-z0-9] $|[<\/]$|(^|[^:]):$/.test(out))) out += c;
    else if (c === '<') {
      skipping = 1;
      if (out.endsWith('::')) out = out.slice(0, -2);
    } else if (c === '>' && before !== '-' && opened > 0) opened--;
    else if (c === '(' && name[i + 1] !== '*') skipping = 1;
    else if (opened > 0 && name.startsWith(' as ', i)) {
      opened--;
      skipping = 1;
    } else out += c;
    before = c;
  }
  if (out.endsWith(' const')) out = out.slice(0, -6);
  return out.replace(/::h[0-9a-fA-F]{16}$/, '') || name;
}

// Whether the `<` that a text starts with is that of `<Type as Trait>::method`.
function isQualified(text) {
  for (let i = 0, open = 0; i < text.length; i++) {
    if (text[i] === '<') open++;
    else if (text[i] === '>' && text[i - 1] !== '-') open--;
    if (!open) return text.startsWith('::', i + 1);
  }
  return false;
}

function* tails(name) {
  if (name[0] === '[') return;
  for (let i = 0; i < name.length; i++) {
    let after;
    if (name.startsWith('::', i)) after = name.slice(i + 2);
    else if (name[i] === '/') after = name.slice(i + 1);
    else continue;
    if (after && !'{:/'.includes(after[0])) yield after;
  }
}

function cutMiddle(name, max, uniform) {
  const chars = Array.from(name);
  let left = max - charWidth('…', uniform), head = 0, tail = 0;
  if (left < 0) return null;
  while (head + tail < chars.length) {
    const fromHead = head <= tail;
    left -= charWidth(fromHead ? chars[head] : chars[chars.length - 1 - tail], uniform);
    if (left < 0) break;
    if (fromHead) head++; else tail++;
  }
  if (head + tail < 3) return null;
  return chars.slice(0, head).join('') + '…' + chars.slice(chars.length - tail).join('');
}

function tooltipName(name) {
  if (name.length <= 400) return name;
  const chars = Array.from(name);
  if (chars.length <= 400) return name;
  return chars.slice(0, 250).join('') + '…' + chars.slice(-149).join('');
}
