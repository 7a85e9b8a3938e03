import { fileURLToPath } from 'node:url';
import { startLoad, startServer } from './harness/index.mjs';
import { readFileSync } from 'node:fs';
const [name, changes = 'live', node = process.execPath, bytes = '3000000', conns = '10'] = process.argv.slice(2);
const out = '/tmp/prof-compress.json';
const load = await startLoad();
const server = await startServer(
  {
    name,
    file: fileURLToPath(new URL('compression/server.mjs', import.meta.url)),
    args: [name, bytes, changes],
    env: { PROF_OUT: out },
    nodeFlags: ['--import', fileURLToPath(new URL('zz-prof.mjs', import.meta.url))],
  },
  { node },
);
const request = { path: '/feed', headers: { 'accept-encoding': 'gzip, deflate, br, zstd' } };
const t0 = performance.now();
let n = 0;
const c0 = await server.cpuUs();
while (performance.now() - t0 < 8000) {
  const r = await load.burst({ port: server.port, connections: +conns, requests: +conns * 20, request });
  n += r.requests;
}
console.log(name, 'req/s', (n / 8).toFixed(0), 'cpu us/req', (((await server.cpuUs()) - c0) / n).toFixed(1));
await load.stop();
await server.stop();
const p = JSON.parse(readFileSync(out));
const self = new Map();
const dt = p.timeDeltas;
const byId = new Map(p.nodes.map((x) => [x.id, x]));
let total = 0;
p.samples.forEach((id, i) => {
  const x = byId.get(id);
  const f = x.callFrame;
  const k = `${f.functionName || '(anon)'} ${f.url.split('/').slice(-3).join('/')}:${f.lineNumber}`;
  self.set(k, (self.get(k) ?? 0) + dt[i]);
  total += dt[i];
});
for (const [k, v] of [...self].sort((a, b) => b[1] - a[1]).slice(0, +(process.env.TOP ?? 28)))
  console.log(((100 * v) / total).toFixed(1).padStart(6), k);
