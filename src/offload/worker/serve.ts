import { subscribe } from 'node:diagnostics_channel';
import { performance } from 'node:perf_hooks';
import { receiveMessageOnPort, type MessagePort, type Transferable } from 'node:worker_threads';
import { notCloneable, offloadError } from '../offload.errors.js';
import { withOffloadContext } from '../offload-context.js';
import { sentError } from '../sent-error.js';
import type { Order, Said, ThreadTask } from '../thread-pool.js';
import { movableIn, uncloneableIn } from '../transferables.js';
import { WorkerApplication } from './application.js';
import { exportsOf, functionIn } from './load.js';

/** https://nodejs.org/api/diagnostics_channel.html#net: before the port is bound. */
const LISTENS = 'tracing:net.server.listen:asyncStart';

const load = (href: string): Promise<unknown> => import(href);

let application: Promise<WorkerApplication> | null = null;
/** The task that is being served. */
let current: { port: MessagePort; started: boolean } | null = null;

const say = (port: MessagePort, said: Said, move: readonly Transferable[] = []): void => port.postMessage(said, move);

subscribe(LISTENS, () => {
  const refused = offloadError(
    'A worker of offload() must not listen: `module` and the files of `Offloader.run()` hold what is computed, not the file ' +
      'that starts a server (main.ts).',
  );
  end(refused);
});

/** The worker ends, and says why to who waits for it. */
function end(why: unknown): void {
  const error = sentError(why);
  if (current?.started === true) say(current.port, { said: 'failed', error, runMs: 0, busyMs: 0 });
  else if (current !== null) say(current.port, { said: 'not-booted', error });
  process.exit(1);
}

/** A worker's program: one task. Never rejects. */
export async function serve({ port, order }: ThreadTask): Promise<void> {
  current = { port, started: false };
  try {
    await served(port, order);
  } finally {
    current = null;
  }
}

async function served(port: MessagePort, order: Order): Promise<void> {
  if (order.do === 'close' || order.do === 'end') {
    try {
      await (await application)?.close();
    } finally {
      if (order.do === 'end') process.exit(0);
    }
    return;
  }
  if (order.do === 'file') {
    await run(port, order, async ([input]) =>
      functionIn(await exportsOf(new URL(order.file), load), order.file)(input),
    );
    return;
  }
  let booted: WorkerApplication;
  try {
    booted = await (application ??= WorkerApplication.boot(load));
  } catch (error) {
    return end(error);
  }
  if (order.do === 'boot') say(port, { said: 'booted', methods: booted.names });
  else await run(port, order, async (parameters) => booted.call(order.name, parameters));
}

type Work = Extract<Order, { do: 'method' | 'file' }>;

async function run(port: MessagePort, order: Work, work: (parameters: unknown[]) => Promise<unknown>): Promise<void> {
  say(port, { said: 'started', at: performance.timeOrigin + performance.now() });
  if (current !== null) current.started = true;
  const startedMs = performance.now();
  const before = performance.eventLoopUtilization();
  const spent = (): { runMs: number; busyMs: number } => ({
    runMs: performance.now() - startedMs,
    busyMs: performance.eventLoopUtilization(before).active,
  });
  try {
    const parameters = receiveMessageOnPort(port)?.message as unknown[];
    const value = await withOffloadContext(order.context, () => work(parameters));
    const times = spent();
    try {
      say(port, { said: 'done', value, ...times }, order.transfer ? movableIn(value) : []);
    } catch (error) {
      throw uncloneableResult(order.name, value, error);
    }
  } catch (error) {
    say(port, { said: 'failed', error: sentError(error), ...spent() });
  }
}

function uncloneableResult(name: string, value: unknown, error: unknown): Error {
  const place = uncloneableIn(value);
  return notCloneable(`The result of "${name}"${place === null ? '' : `, at ${place},`}`, error);
}
