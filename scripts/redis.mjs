// A real Redis for the tests: REDIS_URL, else a server on PATH, else installed with apt as root, else a clear stop.
import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { connect, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ensureProgram, onPath } from './install.mjs';

const SERVERS = ['redis-server', 'valkey-server'];

/** Path of the first of them on PATH, else null. */
export const findRedisServer = () => onPath(SERVERS);

/** Makes sure that {@link startRedis} will find a server; throws with the command to run when it cannot. */
export function ensureRedis() {
  if (!process.env['REDIS_URL'])
    ensureProgram(SERVERS, 'redis-server', 'The tests need a real Redis. Set REDIS_URL, or install a server');
}

/**
 * A port that was free a moment ago, below those that systems give to clients and to servers that ask for any: a test may
 * leave it unused for a while, and a client that connects to such a port from the same port would find itself.
 */
export async function freePort(below = 30_000) {
  for (;;) {
    const port = 10_000 + Math.floor(Math.random() * (below - 10_000));
    if (await isFree(port)) return port;
  }
}

function isFree(port) {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.once('error', (error) => (error.code === 'EADDRINUSE' ? resolve(false) : reject(error)));
    server.listen(port, '127.0.0.1', () => server.close(() => resolve(true)));
  });
}

function answersPing(port) {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1');
    socket.once('error', () => resolve(false));
    socket.once('close', () => resolve(false));
    socket.once('connect', () => socket.write('PING\r\n'));
    socket.once('data', (data) => {
      socket.destroy();
      resolve(data.toString().startsWith('+PONG'));
    });
  });
}

/** Resolves when the server answers, or has exited. */
async function runServer(binary, port, flags) {
  const args = Object.entries({ port, ...flags }).flatMap(([name, value]) => [`--${name}`, String(value)]);
  const child = spawn(binary, args, { stdio: 'ignore' });
  let exited = false;
  const gone = new Promise((resolve) => child.once('exit', () => ((exited = true), resolve())));
  while (!exited && !(await answersPing(port))) await new Promise((resolve) => setTimeout(resolve, 10));
  return { child, gone, hasExited: () => exited };
}

/**
 * Starts a server of our own (or hands out REDIS_URL when `own` is not asked for).
 * `own: true` is for tests that kill, stall or restart their server. `port` and `dir` reuse an earlier one's data.
 * `cluster`: it is a node of a cluster, whose slots the test hands out.
 */
export async function startRedis({ own = false, appendOnly = false, cluster = false, port, dir } = {}) {
  const given = process.env['REDIS_URL'];
  if (given && !own)
    return { url: given, port: Number(new URL(given).port || 6379), child: null, stop: async () => {} };
  const binary = findRedisServer();
  if (!binary) throw new Error('No redis-server on PATH. As root: apt-get update && apt-get install -y redis-server');
  const folder = dir ?? mkdtempSync(join(tmpdir(), 'nestjs-perf-redis-'));
  const flags = {
    bind: '127.0.0.1',
    save: '',
    dir: folder,
    ...(cluster && { 'cluster-enabled': 'yes', 'cluster-announce-ip': '127.0.0.1' }),
    appendonly: appendOnly ? 'yes' : 'no',
    appendfsync: 'always',
    daemonize: 'no',
  };
  // The bus of a cluster's node listens on a port that is 10,000 higher.
  const choosePort = () => freePort(cluster ? 22_000 : undefined);
  let listenOn = port ?? (await choosePort());
  let server = await runServer(binary, listenOn, flags);
  // Another process has taken the port meanwhile.
  for (let left = 5; server.hasExited() && port === undefined && left > 0; left--) {
    listenOn = await choosePort();
    server = await runServer(binary, listenOn, flags);
  }
  const { child, gone, hasExited } = server;
  if (hasExited()) throw new Error(`${binary} ended before it answered on port ${listenOn}.`);
  const stop = async ({ keepData = false } = {}) => {
    if (!hasExited()) {
      child.kill('SIGCONT');
      child.kill('SIGKILL');
      await gone;
    }
    if (!keepData) rmSync(folder, { recursive: true, force: true });
  };
  return { url: `redis://127.0.0.1:${listenOn}`, port: listenOn, dir: folder, child, stop };
}
