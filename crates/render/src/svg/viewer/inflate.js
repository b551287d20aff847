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

// Codes are looked up by so many bits at once; the few longer ones are read bit by bit. A table of
// all would take longer to fill than most columns to unpack.
const AT_ONCE_BITS = 9;

// `fast` has symbol and length for each beginning of the input; `counts` of the codes of a length
// and `symbols` in the order of their codes are what the code is, as the RFC has it.
function codeTable(lengths) {
  const counts = new Uint16Array(16), places = new Uint16Array(17), codes = new Uint16Array(17);
  for (let k = 0; k < lengths.length; k++) if (lengths[k]) counts[lengths[k]]++;
  for (let length = 1; length < 16; length++) {
    places[length + 1] = places[length] + counts[length];
    codes[length + 1] = codes[length] + counts[length] << 1;
  }
  const symbols = new Uint16Array(lengths.length), fast = new Uint16Array(1 << AT_ONCE_BITS);
  for (let symbol = 0; symbol < lengths.length; symbol++) {
    const length = lengths[symbol], code = codes[length]++;
    if (!length) continue;
    symbols[places[length]++] = symbol;
    if (length > AT_ONCE_BITS) continue;
    let reversed = 0;
    for (let k = 0; k < length; k++) reversed |= (code >> k & 1) << (length - 1 - k);
    for (let at = reversed; at < fast.length; at += 1 << length) fast[at] = symbol << 4 | length;
  }
  return { counts, symbols, fast };
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
  function symbol({ counts, symbols, fast }) {
    fill(15);
    const found = fast[held & (1 << AT_ONCE_BITS) - 1];
    if (found) {
      held >>>= found & 15;
      count -= found & 15;
      return found >> 4;
    }
    for (let length = 1, code = 0, first = 0, place = 0; length < 16; length++) {
      code |= held & 1;
      held >>>= 1;
      count--;
      if (code - first < counts[length]) return symbols[place + code - first];
      place += counts[length];
      first = first + counts[length] << 1;
      code <<= 1;
    }
    throw new Error('no such code');
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
  // Nearly all of the work, most of it on literals. Variables of its own, and no calls for those,
  // make it fast before the browser has translated it: data is unpacked once.
  function packed([literals, distances]) {
    const { fast } = literals, mask = (1 << AT_ONCE_BITS) - 1;
    let bits = held, ready = count, at = from, put = to;
    for (;;) {
      for (; ready < 15; ready += 8) bits |= source[at++] << ready;
      let found = fast[bits & mask];
      if (found) {
        bits >>>= found & 15;
        ready -= found & 15;
        found >>= 4;
        if (found < 256) {
          if (put >= size) throw new Error('too many bytes');
          out[put++] = found;
          continue;
        }
      }
      held = bits;
      count = ready;
      from = at;
      // A long code.
      if (!found) found = symbol(literals);
      if (found === 256) break;
      if (found < 256) out[put++] = found; else put = copy(put, found, distances);
      if (put > size) throw new Error('too many bytes');
      bits = held;
      ready = count;
      at = from;
    }
    to = put;
  }
  // Repeats what is there already; returns where that ends.
  function copy(put, found, distances) {
    const length = LENGTHS[found - 257], end = put + length[0] + take(length[1]);
    const distance = DISTANCES[symbol(distances)], back = distance[0] + take(distance[1]);
    if (back < end - put) for (; put < end; put++) out[put] = out[put - back];
    else out.copyWithin(put, put - back, end - back);
    return end;
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
