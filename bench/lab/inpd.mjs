import { Duplex } from 'node:stream';
import { performance } from 'node:perf_hooks';
import { setTimeout as delay } from 'node:timers/promises';
const [variant] = process.argv.slice(2);
const { Controller, Post, UseInterceptors } = await import('@nestjs/common');
const { NestFactory } = await import('@nestjs/core');
const { FastifyAdapter } = await import('@nestjs/platform-fastify');
const { decorateMethod, decorate } = await import('../overhead/application.mjs');
const { PerfModule, DeferWork, Deferrer } = await import(process.env.DIST ?? 'nestjs-perf');
const { tap } = await import('rxjs');
let next = 0, busy = 0;
const order = () => ({ id: `o-${next++}`, total: 99, currency: 'EUR', items: [{ sku: 'A-1', quantity: 2 }] });
const ms = +(process.env.MS ?? 5);
const work = async () => { busy++; await delay(ms); busy--; };
class TapInterceptor { intercept(c, h) { return h.handle().pipe(tap(async (x) => work(x))); } }
class OrdersController { async create() { const c = order(); if (variant === 'fire') void work(c); return c; } }
const ds = [Post()];
if (variant === 'article') ds.push(UseInterceptors(TapInterceptor));
const ours = variant.startsWith('ours');
if (variant === 'ours') ds.push(DeferWork(({ result }) => work(result)));
if (variant === 'oursnull') ds.push(DeferWork(({ result }) => {}));
decorateMethod(OrdersController, 'create', ...ds);
decorate(OrdersController, Controller('orders'));
const off = { latency: false, eventLoop: false, resources: false, compression: false, sinks: [] };
const root = { module: class AppModule {}, imports: ours ? [PerfModule.forRoot({ ...off, defer: { concurrency: 1000, maxPending: 100000 } })] : [], controllers: [OrdersController], providers: [TapInterceptor] };
const app = await NestFactory.create(root, new FastifyAdapter(), { logger: ['error', 'warn'] });
app.enableShutdownHooks();
await app.listen(0, '127.0.0.1');
const server = app.getHttpServer();
const REQ = Buffer.from('POST /orders HTTP/1.1\r\nHost: 127.0.0.1:3000\r\nConnection: keep-alive\r\nContent-Length: 0\r\n\r\n');
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
const one = async (n) => { await run(n); if (ours) await app.get(Deferrer).idle(); while (busy > 0) await delay(2); };
for (let i = 0; i < 6; i++) await one(10000);
process.on('message', async (n) => {
  const a = process.cpuUsage();
  await one(n);
  const b = process.cpuUsage(a);
  process.send((b.user + b.system) / n);
});
if (process.send) process.send('ready'); else {
  const { Session } = await import('node:inspector/promises'); const s = new Session(); s.connect();
  await s.post('Profiler.enable'); await s.post('Profiler.setSamplingInterval', { interval: 100 }); await s.post('Profiler.start');
  const a = process.cpuUsage(); for (let i = 0; i < 10; i++) await one(10000); const b = process.cpuUsage(a);
  const { profile } = await s.post('Profiler.stop');
  const self = new Map(); const dt = profile.timeDeltas; const byId = new Map(profile.nodes.map((n) => [n.id, n]));
  profile.samples.forEach((id, i) => { const n = byId.get(id).callFrame; const k = `${n.functionName || '(anon)'} ${n.url.replace(/.*node_modules\//, '').replace(/.*\/dist\//, 'OURS/')}:${n.lineNumber + 1}`; self.set(k, (self.get(k) ?? 0) + dt[i]); });
  const all = [...self].sort((x, y) => y[1] - x[1]); const per = (v) => (v / 1e5).toFixed(2);
  console.log('cpu us/req', ((b.user + b.system) / 1e5).toFixed(2)); for (const [k, v] of all.slice(0, 60)) console.log(per(v), k);
  process.exit();
}
process.on('disconnect', () => process.exit());
