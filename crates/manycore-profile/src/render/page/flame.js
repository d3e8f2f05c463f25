// Where the time waited went, by the calls that led there: callers above, waits below; as wide as they took.

const FLAME_NODES_MAX = 4000;

const flameTree = (stacks, lockFirst) => {
  const root = { label: 'all waits', detail: '', ns: 0, below: new Map(), parent: null, depth: 0 };
  for (const [lock, ns, frames] of stacks) {
    const calls = frames.map((frame) => profile.frames[frame]);
    const last = [`lock ${lockName(lock)}`, ''];
    const path = lockFirst ? [last, ...calls] : [...calls, last];
    let node = root;
    node.ns += ns;
    for (const [label, detail] of path) {
      const key = `${label}\n${detail}`;
      if (!node.below.has(key)) node.below.set(key, { label, detail, ns: 0, below: new Map(), parent: node, depth: node.depth + 1 });
      node = node.below.get(key);
      node.ns += ns;
    }
  }
  return root;
};

const flamePanel = (stacks) => {
  const area = el('div', { className: 'flame', role: 'group', 'aria-label': 'flame graph of the time waited' });
  const readout = el('p', { className: 'readout', role: 'status' });
  const search = el('input', { type: 'search', oninput: () => draw() });
  const order = el('select', { onchange: () => rebuild() },
    el('option', { value: 'calls' }, 'callers first'), el('option', { value: 'lock' }, 'locks first'));
  const reset = el('button', { type: 'button', onclick: () => zoom(root) }, 'All waits');
  let root, top, focused, buttons;

  const rebuild = () => { root = flameTree(stacks, order.value === 'lock'); zoom(root); };
  const zoom = (node) => {
    const hadFocus = area.contains(document.activeElement);
    [top, focused] = [node, node];
    draw();
    tell(node);
    if (hadFocus) buttons.get(node).focus();
  };
  // Stacks of waits that took no time are there, too.
  const share = (ns, all) => (all > 0 ? ns / all : 0);
  const tell = (node) => {
    readout.textContent = `${node.label} ${node.detail}: ${duration(node.ns)}, ${percent(share(node.ns, root.ns))} of the time waited`;
  };
  const children = (node) => [...node.below.values()].sort((a, b) => b.ns - a.ns);

  // Those in view: the callers of `top` at full width, and what is below it.
  const placed = () => {
    const all = [];
    for (let node = top; node; node = node.parent) all.unshift([node, 0, 1, node !== top]);
    const queue = [[top, 0]];
    while (queue.length > 0 && all.length < FLAME_NODES_MAX) {
      const [node, start] = queue.shift();
      let left = start;
      for (const child of children(node)) {
        const width = share(child.ns, top.ns);
        // Less than can be seen or hit.
        if (width < 0.001) break;
        all.push([child, left, width, false]);
        queue.push([child, left]);
        left += width;
      }
    }
    return all;
  };

  const draw = () => {
    const words = search.value.trim().toLowerCase();
    const isFound = (node) => words !== '' && `${node.label} ${node.detail}`.toLowerCase().includes(words);
    buttons = new Map();
    let deepest = 0;
    for (const [node, left, width, above] of placed()) {
      deepest = Math.max(deepest, node.depth);
      buttons.set(node, el('button', {
        type: 'button', title: `${node.label} ${node.detail}\n${duration(node.ns)}`, tabIndex: node === focused ? 0 : -1,
        className: `${isFound(node) ? 'found' : ''} ${above ? 'above' : ''}`,
        style: {
          left: `${100 * left}%`, width: `${100 * width}%`, top: `${1.25 * node.depth}rem`,
          background: colour(node.label, node.label.startsWith('lock ') ? 190 : 10, 50),
        },
        onclick: () => zoom(node), onfocus: () => { focused = node; tell(node); }, onmouseenter: () => tell(node),
      }, node.label));
    }
    area.style.height = `${1.25 * (deepest + 1)}rem`;
    area.replaceChildren(...buttons.values());
    if (words !== '') readout.textContent = `${percent(share(found(root, isFound), root.ns))} of the time waited has '${words}' on its way`;
  };

  // Time with a match on the way, each stack once.
  const found = (node, isFound) => (isFound(node) ? node.ns : sum(children(node).map((child) => found(child, isFound))));

  area.addEventListener('keydown', (event) => {
    const siblings = focused.parent ? children(focused.parent) : [focused];
    const at = siblings.indexOf(focused);
    const next = {
      ArrowUp: focused.parent, ArrowDown: children(focused)[0], ArrowLeft: siblings[at - 1], ArrowRight: siblings[at + 1],
    }[event.key];
    if (event.key === 'Escape') { zoom(root); event.preventDefault(); }
    if (!next || !buttons.has(next)) return;
    event.preventDefault();
    buttons.get(focused).tabIndex = -1;
    buttons.get(next).tabIndex = 0;
    buttons.get(next).focus();
  });
  rebuild();
  return el('div', {},
    el('div', { className: 'controls' }, el('label', {}, 'Search', search), el('label', {}, 'Order', order), reset),
    readout, area,
    el('p', { className: 'faint' }, 'A click, or Enter, zooms; the arrow keys walk; Escape shows all. Waits of less than a thousandth are not drawn.'));
};
