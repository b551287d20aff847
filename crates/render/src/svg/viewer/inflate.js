// Raw deflate (RFC 1951), for small data, which is there before the first paint this way, and for
// browsers without DecompressionStream.

const LENGTHS = [], DISTANCES = [];
for (let code = 0, base = 3; code < 28; code++) {
  const extra = code < 8 ? 0 : (code >> 2) - 1;
  LENGTHS.push([base, extra]);
  base += 1 << extra;
}
LENGTHS.push([258, 0]);
for (let code = 0, base = 1; code < 30; code++) {
  const extra = code < 4 ? 0 : (code >> 1) - 1;
  DISTANCES.push([base, extra]);
  base += 1 << extra;
}
const LENGTH_ORDER = [16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15];

// A table over the next `bits` bits of the input: symbol and length of the code they begin with.
function codeTable(lengths) {
  const bits = Math.max(1, ...lengths);
  const codes = new Uint32Array(1 << bits);
  let code = 0;
  for (let length = 1; length <= bits; length++) {
    for (let symbol = 0; symbol < lengths.length; symbol++) {
      if (lengths[symbol] !== length) continue;
      let reversed = 0;
      for (let k = 0; k < length; k++) reversed |= (code >> k & 1) << (length - 1 - k);
      for (let at = reversed; at < codes.length; at += 1 << length) codes[at] = symbol << 4 | length;
      code++;
    }
    code <<= 1;
  }
  return { bits, codes };
}

function inflate(source, size) {
  const out = new Uint8Array(size);
  let from = 0, to = 0, held = 0, count = 0;
  function fill(bits) {
    for (; count < bits; count += 8) held |= source[from++] << count;
  }
  function take(bits) {
    fill(bits);
    const value = held & (1 << bits) - 1;
    held >>>= bits;
    count -= bits;
    return value;
  }
  function symbol(table) {
    fill(table.bits);
    const found = table.codes[held & (1 << table.bits) - 1], length = found & 15;
    if (!length) throw new Error('no such code');
    held >>>= length;
    count -= length;
    return found >> 4;
  }
  function fixedTables() {
    const lengths = [];
    for (let k = 0; k < 288; k++) lengths.push(k < 144 ? 8 : k < 256 ? 9 : k < 280 ? 7 : 8);
    return [codeTable(lengths), codeTable(new Array(30).fill(5))];
  }
  function ownTables() {
    const literals = take(5) + 257, distances = take(5) + 1, orders = take(4) + 4;
    const first = new Array(19).fill(0);
    for (let k = 0; k < orders; k++) first[LENGTH_ORDER[k]] = take(3);
    const table = codeTable(first), lengths = [];
    while (lengths.length < literals + distances) {
      const found = symbol(table);
      if (found < 16) lengths.push(found);
      else if (found === 16) {
        for (let again = take(2) + 3; again; again--) lengths.push(lengths[lengths.length - 1]);
      } else for (let again = found === 17 ? take(3) + 3 : take(7) + 11; again; again--) lengths.push(0);
    }
    return [codeTable(lengths.slice(0, literals)), codeTable(lengths.slice(literals))];
  }
  function stored() {
    from -= count >> 3;
    held = count = 0;
    const length = source[from] | source[from + 1] << 8;
    out.set(source.subarray(from + 4, from + 4 + length), to);
    from += 4 + length;
    to += length;
  }
  function packed([literals, distances]) {
    for (let found; (found = symbol(literals)) !== 256;) {
      if (found < 256) {
        out[to++] = found;
        continue;
      }
      const length = LENGTHS[found - 257], end = to + length[0] + take(length[1]);
      const distance = DISTANCES[symbol(distances)], back = distance[0] + take(distance[1]);
      for (; to < end; to++) out[to] = out[to - back];
    }
  }
  for (let last = 0; !last;) {
    last = take(1);
    const kind = take(2);
    if (from > source.length + 8 || kind === 3) throw new Error('no deflate');
    if (kind === 0) stored(); else packed(kind === 1 ? fixedTables() : ownTables());
  }
  if (to !== size) throw new Error('bytes are missing');
  return out;
}
