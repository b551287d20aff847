// Weights and shares, as amount.rs writes them.

const group = n => String(n).replace(/\B(?=(\d{3})+$)/g, ',');
const twoDigits = n => String(n % 100).padStart(2, '0');
const framesText = n => group(n) + (n === 1 ? ' frame' : ' frames');

function amount(weight) {
  const step = data.steps.find(([size]) => weight >= size || size === 1);
  let text;
  if (!step) text = group(weight);
  else if (step[0] === 1) text = group(weight) + ' ' + step[1];
  else {
    const hundredths = Math.floor(Number(weight) / step[0] * 100 + 0.5);
    text = group(Math.floor(hundredths / 100)) + '.' + twoDigits(hundredths) + ' ' + step[1];
  }
  return data.noun ? text + ' ' + data.noun : text;
}

function share(weight, whole) {
  if (weight === whole && weight > 0) return '100%';
  const hundredths = whole > 0 ? Math.floor(Number(weight) / Number(whole) * 10000 + 0.5) : 0;
  if (weight > 0 && hundredths === 0) return '<0.01%';
  const shown = Math.min(hundredths, 9999);
  return Math.floor(shown / 100) + '.' + twoDigits(shown) + '%';
}
