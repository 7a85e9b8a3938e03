// child: one variant in process, fake sockets
import { Duplex } from 'node:stream';
import { performance } from 'node:perf_hooks';
const [variant] = process.argv.slice(2);
const { Controller, Get, Param, Module } = await import('@nestjs/common');
const { NestFactory } = await import('@nestjs/core');
const { FastifyAdapter } = await import('@nestjs/platform-fastify');
const { decorateMethod, decorate, UsersController } = await import('../overhead/application.mjs');
const OFF = { eventLoop: false, resources: false, compression: false, defer: false, latency: false };
const V = {
  bare: null, bare2: null,
  none: OFF,
  latency: { ...OFF, latency: undefined },
  latency2: { ...OFF, latency: undefined },
  loop: { ...OFF, eventLoop: undefined },
  comp: { ...OFF, compression: undefined },
  latcomp: { ...OFF, latency: undefined, compression: undefined },
  latloop: { ...OFF, latency: undefined, eventLoop: undefined },
  defer: { ...OFF, defer: undefined },
  all: undefined, all2: undefined,
};
const clean = (o) => o && Object.fromEntries(Object.entries(o).filter(([, v]) => v !== undefined));
const imports = [];
if (variant in V && V[variant] !== null) {
  const { PerfModule } = await import(process.env.DIST ?? 'nestjs-perf');
  imports.push(PerfModule.forRoot(clean(V[variant])));
}
const root = { module: function AppModule() {}, imports, providers: [], controllers: [UsersController] };
const app = await NestFactory.create(root, new FastifyAdapter(), { logger: ['error', 'warn'] });
const f = app.getHttpAdapter().getInstance();
if (variant === 'onreq') f.addHook('onRequest', (q, r, d) => { d(); });
if (variant === 'onsend') f.addHook('onSend', (q, r, p, d) => { d(null, p); });
if (variant === 'preser') f.addHook('preSerialization', (q, r, p, d) => { d(null, p); });
if (variant === 'reqlistener') f.server.prependListener('request', (q, r) => { q.zz = 1; });
if (variant === 'close') f.server.prependListener('request', (q, r) => { r.on('close', onc); });
if (variant === 'now2') f.server.prependListener('request', (q, r) => { q.aa = performance.now(); q.aa -= performance.now(); });
if (variant === 'vary') f.addHook('onSend', (q, r, p, d) => { r.header('vary', 'Accept-Encoding'); d(null, p); });
function onc() { }
await app.listen(0, '127.0.0.1');
const server = app.getHttpServer();
const REQ = Buffer.from('GET /users/42 HTTP/1.1\r\nHost: 127.0.0.1:3000\r\nConnection: keep-alive\r\n\r\n');
let left = 0, wake = null;
class Fake extends Duplex {
  constructor() { super({ autoDestroy: false }); }
  _read() {}
  _write(c, e, cb) { cb(); this.answered(); }
  _writev(cs, cb) { cb(); this.answered(); }
  answered() { if (left-- > 0) pend.push(this); else if (++idle === CONN) wake?.(); }
  setTimeout() { return this; } setKeepAlive() {} setNoDelay() {} ref() {} unref() {}
}
let idle = 0; const CONN = 20; let pend = [];
const socks = Array.from({ length: CONN }, () => { const s = new Fake(); server.emit('connection', s); return s; });
const turn = () => { const p = pend; pend = []; for (const s of p) s.push(REQ); if (idle < CONN) setImmediate(turn); };
const run = (n) => new Promise((r) => { left = n - CONN; idle = 0; wake = r; pend = [...socks]; turn(); });
await run(60000);
process.on('message', async (n) => {
  const a = process.cpuUsage(); const t = performance.now();
  await run(n);
  const b = process.cpuUsage(a);
  process.send((b.user + b.system) / n);
});
if (process.send) process.send('ready');
process.on('disconnect', () => process.exit());
if (process.env.PROF) {
  const { Session } = await import('node:inspector/promises'); const s = new Session(); s.connect();
  await s.post('Profiler.enable'); await s.post('Profiler.setSamplingInterval', { interval: 100 }); await s.post('Profiler.start');
  const N = 200000; const a = process.cpuUsage(); await run(N); const b = process.cpuUsage(a);
  const { profile } = await s.post('Profiler.stop');
  const self = new Map(); const dt = profile.timeDeltas; const byId = new Map(profile.nodes.map((n) => [n.id, n]));
  profile.samples.forEach((id, i) => { const n = byId.get(id).callFrame; const k = `${n.functionName || '(anon)'} ${n.url.replace(/.*node_modules\//, '').replace(/.*\/dist\//, 'OURS/')}:${n.lineNumber + 1}`; self.set(k, (self.get(k) ?? 0) + dt[i]); });
  const all = [...self].sort((x, y) => y[1] - x[1]); const per = (v) => (v / N).toFixed(2);
  console.log('cpu us/req', ((b.user + b.system) / N).toFixed(2)); for (const [k, v] of all.slice(0, 45)) console.log(per(v), k);
  process.exit();
}
