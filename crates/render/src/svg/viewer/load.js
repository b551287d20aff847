// The columns of the tree out of the texts of the data.

// Weights are ordinary numbers unless those would lose digits; big integers then. Both take the
// same `+` and `<`; Number() makes either an operand of a division.
const ZERO = data.big ? BigInt(0) : 0;
const weights = length => data.big ? new BigUint64Array(length) : new Float64Array(length);

function bytesOf(text) {
  if (Uint8Array.fromBase64) return Uint8Array.fromBase64(text);
  const binary = atob(text), bytes = new Uint8Array(binary.length);
  for (let k = 0; k < bytes.length; k++) bytes[k] = binary.charCodeAt(k);
  return bytes;
}

async function unpacked(name) {
  const [size, text] = data.columns[name];
  const stream = new Blob([bytesOf(text)]).stream().pipeThrough(new DecompressionStream('deflate-raw'));
  const bytes = new Uint8Array(await new Response(stream).arrayBuffer());
  if (bytes.length !== size) throw new Error('bytes are missing');
  return bytes;
}

function numbers(bytes, length) {
  const out = new Uint32Array(length);
  for (let k = 0, at = 0; k < length; k++) {
    let byte = bytes[at++], value = byte;
    if (byte > 127) {
      value &= 127;
      for (let shift = 7; byte > 127; shift += 7) {
        byte = bytes[at++];
        value |= (byte & 127) << shift;
      }
    }
    out[k] = value;
  }
  return out;
}

// All lowest bytes, then all second ones, and so on.
function planes(bytes, length) {
  const out = new Uint32Array(length);
  for (let at = 0, shift = 0; at < bytes.length; shift += 8) {
    for (let k = 0; k < length; k++, at++) out[k] |= bytes[at] << shift;
    if (!length) break;
  }
  return out;
}

const sumOfDigits = (digits, step) => digits.reduceRight((sum, digit) => sum * step + digit);

function weightsIn(bytes, length) {
  const out = weights(length), { big } = data;
  for (let k = 0, at = 0; k < length; k++) {
    let byte = bytes[at++];
    if (byte > 127) {
      const digits = [byte & 127];
      for (; byte > 127; digits.push(byte & 127)) byte = bytes[at++];
      out[k] = big ? sumOfDigits(digits.map(BigInt), BigInt(128)) : sumOfDigits(digits, 128);
    } else out[k] = big ? BigInt(byte) : byte;
  }
  return out;
}

let names = [], paint = [];
// The tree as it is in the file.
let base = null;

function decode({ names: text, paint: paints, label, up, self, before, gap, fill, sure }) {
  names = new TextDecoder().decode(text).split('\n');
  names.pop();
  paint = numbers(paints, data.labels);
  const labels = planes(label, data.count), depths = numbers(up, data.count);
  for (let k = 0, met = 0, below = 0; k < labels.length; k++) {
    labels[k] = labels[k] ? labels[k] - 1 : met++;
    depths[k] = below - depths[k];
    below = depths[k] + 1;
  }
  base = { label: labels, depth: depths, self: weightsIn(self, data.count) };
  if (before) base.before = weightsIn(before, data.count);
  if (gap) base.gap = weightsIn(gap, data.count);
  if (fill) base.fill = numbers(fill, data.count);
  if (sure) base.sure = sure;
}

// Calls `then` once the tree is there: at once when it is small.
function load(then, fail) {
  const columns = Object.keys(data.columns);
  const small = columns.reduce((sum, name) => sum + data.columns[name][1].length, 0) < 1 << 16;
  if (small || !window.DecompressionStream) {
    const bytes = {};
    for (const name of columns) bytes[name] = inflate(bytesOf(data.columns[name][1]), data.columns[name][0]);
    decode(bytes);
    delete data.columns;
    then();
    return;
  }
  Promise.all(columns.map(unpacked)).then(found => {
    const bytes = {};
    columns.forEach((name, k) => { bytes[name] = found[k]; });
    decode(bytes);
    delete data.columns;
    then();
  }).catch(fail);
}
