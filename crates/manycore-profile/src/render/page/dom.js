// Elements and numbers. Whatever comes from the profile becomes text, and never markup.

// An element with properties, attributes (those with a dash, and `role`), listeners (`on...`), and children: elements or text.
const el = (tag, properties = {}, ...children) => {
  const made = document.createElement(tag);
  for (const [key, value] of Object.entries(properties)) {
    if (value === undefined) continue;
    if (key.startsWith('on')) made.addEventListener(key.slice(2), value);
    else if (key === 'style') for (const [name, set] of Object.entries(value)) made.style.setProperty(name, set);
    else if (key.includes('-') || key === 'role' || key === 'scope' || key === 'colspan') made.setAttribute(key, value);
    else made[key] = value;
  }
  made.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined));
  return made;
};

const svg = (tag, attributes = {}, ...children) => {
  const made = document.createElementNS('http://www.w3.org/2000/svg', tag);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
};

// To three digits, whole digits kept.
const digits = (value) => {
  const size = Math.abs(value);
  return size === 0 ? '0' : value.toFixed(size >= 99.95 ? 0 : size >= 9.995 ? 1 : 2);
};

const duration = (ns) => {
  if (ns === null || ns === undefined) return '';
  for (const [unit, size] of [['s', 1e9], ['ms', 1e6], ['us', 1e3]]) {
    if (ns >= size * 0.9995) return `${digits(ns / size)} ${unit}`;
  }
  return `${digits(ns)} ns`;
};

const seconds = (value) => duration(value * 1e9);
const count = (value) => (value === null || value === undefined ? '' : value.toLocaleString('en'));
const percent = (share) => {
  if (share === null || share === undefined) return '';
  return share > 0 && share < 0.00095 ? '<0.1 %' : `${(share * 100).toFixed(share < 0.0995 ? 1 : 0)} %`;
};
const sum = (values) => values.reduce((all, one) => all + one, 0);
const plural = (number, one, many) => `${count(number)} ${number === 1 ? one : many}`;

// Names of locks and functions stand apart from the text around them.
const name = (text, detail) => el('span', { className: 'name', title: detail }, text);

// The calls of a stack, innermost first, by their numbers in the profile's table of frames.
const calls = (frames) => (frames.length === 0
  ? el('p', { className: 'faint' }, 'not known')
  : el('ol', { className: 'calls' }, frames.map((frame) => {
    const [label, detail] = profile.frames[frame];
    return el('li', {}, label, ' ', el('span', { className: 'faint' }, detail));
  })));

// A colour that stays with a name, light enough for dark text on it.
const colour = (text, from, range) => {
  let hash = 0;
  for (let at = 0; at < text.length; at += 1) hash = (hash * 31 + text.charCodeAt(at)) | 0;
  return `hsl(${from + (Math.abs(hash) % range)} 65% ${64 + (Math.abs(hash >> 8) % 12)}%)`;
};
