import { fork } from 'node:child_process';
const specs = process.argv.slice(2); const G = +(process.env.G ?? 3), R = +(process.env.R ?? 12), N = +(process.env.N ?? 10000);
const all = specs.map(() => []); const base = [];
for (let g = 0; g < G; g++) {
  const cs = [];
  for (const s of specs) { const [v, dist] = s.split('@'); const c = fork(new URL('inpd.mjs', import.meta.url), [v], { execPath: process.env.NODE_BIN ?? process.execPath, env: { ...process.env, ...(dist ? { DIST: dist } : {}) } }); await new Promise((r) => c.once('message', r)); cs.push(c); }
  for (let r = 0; r < R; r++) { const o = [...cs.keys()].sort(() => Math.random() - .5); const row = []; for (const i of o) { cs[i].send(N); row[i] = await new Promise((r) => cs[i].once('message', r)); } base.push(row[0]); row.forEach((v, i) => all[i].push(v - row[0])); }
  for (const c of cs) c.kill();
}
const q = (a, p) => [...a].sort((x, y) => x - y)[Math.floor(a.length * p)];
console.log('base', q(base, .5).toFixed(2));
specs.forEach((s, i) => console.log(s.padEnd(30), q(all[i], .5).toFixed(2), ' [', q(all[i], .25).toFixed(2), q(all[i], .75).toFixed(2), ']'));
