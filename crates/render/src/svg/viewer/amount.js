// Weights and shares, as amount.rs writes them.

const group = n => String(n).replace(/\B(?=(\d{3})+$)/g, ',');
const twoDigits = n => String(n % 100).padStart(2, '0');
const framesText = n => group(n) + (n === 1 ? ' frame' : ' frames');

// The quotient and its hundredths, rounded; whole numbers all through, so both are exact.
const EXACT = 2 ** 44;
function divided(number, by) {
  if (typeof number !== 'bigint' && by < EXACT) {
    const whole = Math.floor(number / by), hundredths = Math.floor(((number - whole * by) * 200 + by) / (2 * by));
    return hundredths < 100 ? [whole, hundredths] : [whole + 1, 0];
  }
  const size = BigInt(by), hundredths = (BigInt(number) * 200n + size) / (2n * size);
  return [hundredths / 100n, Number(hundredths % 100n)];
}

// `scale` has the unit, where that is not the graph's own.
function numberText(weight, scale = data) {
  const { steps } = scale, [size, unit] = steps.find(step => weight >= step[0]) || steps[steps.length - 1] || [1, ''];
  let text = group(weight);
  if (size > 1) {
    const [whole, hundredths] = divided(weight, size);
    text = group(whole) + '.' + twoDigits(hundredths);
  }
  if (unit) text += ' ' + unit;
  return text;
}

function amount(weight, scale = data) {
  const text = numberText(weight, scale);
  return scale.noun ? text + ' ' + scale.noun : text;
}

function share(weight, whole) {
  if (weight === whole && weight > 0) return '100%';
  const hundredths = whole > 0 ? Math.floor(Number(weight) / Number(whole) * 10000 + 0.5) : 0;
  if (weight > 0 && hundredths === 0) return '<0.01%';
  const shown = Math.min(hundredths, 9999);
  return Math.floor(shown / 100) + '.' + twoDigits(shown) + '%';
}

// What follows the share of a box that weighed something else before.
function change(node) {
  if (!selfBefore || selfBefore[node] === selfOf[node]) return '';
  const grew = selfOf[node] > selfBefore[node];
  const size = grew ? selfOf[node] - selfBefore[node] : selfBefore[node] - selfOf[node];
  const hundredths = Math.floor(Number(size) / Number(whole) * 10000 + 0.5);
  const sign = grew !== Boolean(data.negate) ? '+' : '-';
  return `; ${sign}${group(Math.floor(hundredths / 100))}.${twoDigits(hundredths)}%`;
}
