// Names and stacks into the clipboard.

const stackOf = node => {
  const stack = [];
  for (let i = node; i > 0 || (i === 0 && isAround()); i = parent[i]) stack.push(nameOf(i));
  // Callers stand above what they call.
  return (rootOf(node) ? stack : stack.reverse()).join(';');
};

// For pages that may not use the clipboard's own interface.
function copyByHand(text) {
  const area = document.createElementNS(HTML, 'textarea');
  const box = element('foreignObject', { width: 1, height: 1, opacity: 0 });
  const before = document.activeElement;
  area.value = text;
  box.append(area);
  root.append(box);
  area.select();
  let done = false;
  try {
    done = document.execCommand('copy');
  } catch (refused) {
    // Documents that are not HTML have no commands.
  }
  box.remove();
  if (before && before.focus) before.focus({ preventScroll: true });
  return done;
}

async function copy(text, what) {
  let done;
  try {
    await navigator.clipboard.writeText(text);
    done = true;
  } catch (refused) {
    done = copyByHand(text);
  }
  tell(done ? `Copied the ${what}: ${cutEnd(text, (width - 200) * 1000 / data.uiSize)}`
    : 'This page may not use the clipboard.');
}
