import { flights } from './compression/flights.mjs';
const OPEN_ARRAY = Symbol('a'),
  CLOSE = Symbol('c'),
  OPEN = Symbol('o');
function record(value) {
  const out = [];
  rec(value, out);
  return out;
}
function rec(v, out) {
  if (typeof v !== 'object' || v === null) {
    out.push(v);
    return;
  }
  if (Array.isArray(v)) {
    out.push(v.length);
    out.push(OPEN_ARRAY);
    for (const e of v) rec(e, out);
    return;
  }
  out.push(OPEN);
  for (const k in v) {
    out.push(k);
    rec(v[k], out);
  }
  out.push(CLOSE);
}
class Walk {
  constructor(rec) {
    this.rec = rec;
    this.i = 0;
  }
  same(v) {
    const rec = this.rec;
    if (typeof v !== 'object' || v === null) return rec[this.i++] === v;
    if (Array.isArray(v)) {
      if (rec[this.i++] !== v.length || rec[this.i++] !== OPEN_ARRAY || typeof v.toJSON === 'function') return false;
      for (let j = 0; j < v.length; j++) if (!this.same(v[j])) return false;
      return true;
    }
    if (rec[this.i++] !== OPEN || Object.getPrototypeOf(v) !== Object.prototype || typeof v.toJSON === 'function')
      return false;
    for (const k in v) {
      if (rec[this.i++] !== k) return false;
      const e = v[k];
      if (typeof e === 'object' && e !== null) {
        if (!this.same(e)) return false;
      } else if (rec[this.i++] !== e) return false;
    }
    return rec[this.i++] === CLOSE;
  }
}
const body = flights(3e6);
const r = record(body);
const t = (n, f) => {
  const a = [];
  for (let i = 0; i < n; i++) {
    const s = performance.now();
    f();
    a.push(performance.now() - s);
  }
  a.sort((x, y) => x - y);
  return `${a[n >> 1].toFixed(2)} (min ${a[0].toFixed(2)})`;
};
console.log(process.version, 'flat length', r.length);
let text = JSON.stringify(body),
  text2 = JSON.stringify(body);
console.log(
  'stringify',
  t(40, () => {
    text2 = JSON.stringify(body);
  }),
);
console.log(
  'walk',
  t(40, () => {
    if (!new Walk(r).same(body)) throw 1;
  }),
);
console.log(
  'stringify+compare',
  t(40, () => {
    text2 = JSON.stringify(body);
    if (text2 !== text) throw 1;
  }),
);
const fresh = JSON.parse(text);
console.log(
  'walk fresh',
  t(40, () => {
    if (!new Walk(r).same(fresh)) throw 1;
  }),
);
console.log(
  'record',
  t(10, () => record(body)),
);
